//! A node's `eth_getLogs`. A node knows no pages: it is asked for all blocks in which rows of the page could lie, which the
//! page is cut out of; and timed over those that its rows do cover, of which both give every row.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::plain::Plain;
use super::{
    Comparison, Lacking, Other, Ours, Patience, Peer, Refusal, Round, Settled, Verdict, blocks, said, time,
};
use crate::bench::compare::{Differences, Row, differences, united};
use crate::bench::filter::LogFilter;
use crate::bench::pick::PAGE;
use crate::bench::statistics::StoreFacts;
use crate::http::parse_quantity;
use crate::model::B256;
use crate::node::{Node, NodeError, ResultText, wire};

const METHOD: &str = "eth_getLogs";

struct OfNode {
    node: Node,
    /// How it is timed, where it speaks HTTP without TLS and without passwords, whether or not it can be reached so.
    plain: Option<Plain>,
}

impl Other for OfNode {
    const WHO: &'static str = "the node";
    const SIZE: &'static str = super::BYTES;

    fn name(&self) -> &'static str {
        super::NODE
    }

    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<Row>, Refusal> {
        let mut all = Vec::new();
        for params in self.params(filter) {
            all.push(rows(self.ask(&params).await?.get()));
        }
        all_of(all)
    }

    async fn settle(&mut self, filter: &LogFilter, ours: &[Row]) -> Result<Settled, Refusal> {
        let (mut all, mut size) = (Vec::new(), 0);
        for params in self.params(filter) {
            all.push(match &mut self.plain {
                Some(plain) => {
                    let body = plain.whole(METHOD, &params).await?;
                    size += body.len() as u64;
                    serde_json::from_slice::<Answer<'_>>(&body)
                        .map_err(|error| error.to_string())
                        .and_then(|answer| rows(answer.result.get()))
                }
                None => {
                    let text = self.ask(&params).await?;
                    size += text.get().len() as u64;
                    rows(text.get())
                }
            });
        }
        Ok(Settled {
            way: None,
            size,
            found: differences(ours, &all_of(all)?),
        })
    }

    /// Bytes.
    async fn answer(&mut self, filter: &LogFilter) -> Result<u64, Refusal> {
        let mut size = 0;
        for params in self.params(filter) {
            size += match &mut self.plain {
                Some(plain) => plain.ask(METHOD, &params).await?,
                None => self.ask(&params).await?.get().len() as u64,
            };
        }
        Ok(size)
    }
}

impl OfNode {
    /// Where it asks to be left alone for a while (`Retry-After`) that is its answer: nobody sleeps it out.
    fn of(node: &Node) -> Self {
        Self {
            plain: Plain::of(node.config()),
            node: node.for_clients(),
        }
    }

    fn params(&self, filter: &LogFilter) -> Vec<String> {
        filter.node_params(filter.from.unwrap_or(0), filter.to.unwrap_or(u64::MAX))
    }

    async fn ask(&self, params: &str) -> Result<ResultText, Refusal> {
        let answer = self.node.raw(METHOD, params).await;
        answer.map_err(|error| refusal(&error))
    }
}

/// A failure of the node's as a refusal.
fn refusal(error: &NodeError) -> Refusal {
    let rest = error.rest_asked().filter(|rest| !rest.is_zero());
    let how_long = rest.map_or_else(String::new, |rest| {
        format!(" (for {:.0} s)", rest.as_secs_f64().ceil())
    });
    Refusal {
        why: format!("the node: {error}{how_long}"),
        is_late: matches!(error, NodeError::Timeout { .. } | NodeError::Transport { .. }),
        is_rest: rest.is_some(),
    }
}

/// The rows of the answers to one filter.
fn all_of(answers: Vec<Result<Vec<Row>, String>>) -> Result<Vec<Row>, Refusal> {
    let found: Result<Vec<_>, _> = answers.into_iter().collect();
    let found = found.map_err(|why| Refusal::of(format!("the node: {}", said(&why))))?;
    Ok(found.into_iter().reduce(united).unwrap_or_default())
}

/// An answer as it comes.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The logs of an answer, with what a node gives beside them.
fn rows(text: &str) -> Result<Vec<Row>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Beside {
        block_hash: B256,
        transaction_index: String,
        // Not every node gives it.
        block_timestamp: Option<String>,
    }
    let logs = wire::logs(text).map_err(|error| error.to_string())?;
    let beside: Vec<Beside> =
        serde_json::from_str(text).map_err(|error| format!("malformed logs: {error}"))?;
    let quantity =
        |text: &str| parse_quantity(text).ok_or_else(|| format!("malformed logs: `{text}` is no quantity"));
    let rows = logs.into_iter().zip(beside).map(|(log, beside)| {
        Ok(Row {
            log,
            block_hash: Some(beside.block_hash),
            transaction_index: Some(quantity(&beside.transaction_index)?),
            timestamp: beside.block_timestamp.as_deref().map(quantity).transpose()?,
        })
    });
    rows.collect()
}

/// Why logs are not compared with a node: it does not have the block that is the head here.
pub async fn lacks_head(node: &Node, facts: &StoreFacts) -> Option<String> {
    match node.block_id(facts.head).await {
        Err(error) => Some(format!(
            "it was asked for block {} and failed: {error}",
            facts.head
        )),
        Ok(Some(block)) if block.hash == facts.head_hash => None,
        Ok(Some(block)) => Some(format!(
            "its block {} is {}, that of the store is {}: one of them is on another branch, try again when both agree",
            facts.head, block.hash, facts.head_hash
        )),
        Ok(None) => Some(format!(
            "it does not have block {}, the head of the store: it is behind, try again when it has caught up",
            facts.head
        )),
    }
}

/// First and last block of a range.
type Blocks = (u64, u64);

/// Asks the service for a page and the node for the blocks in which its rows could lie, compares both, and times them.
pub async fn with_node(peer: &mut Peer<Node>, filter: &LogFilter, round: &mut Round<'_>) {
    let Peer { who, patience } = peer;
    let mut node = OfNode::of(who);
    let theirs = match judged(&mut node, patience, filter, round).await {
        Ok(theirs) => theirs,
        Err(why) => {
            let asked = super::in_words(filter);
            round.found.push(Comparison::lacking(super::NODE, asked, why));
            return;
        }
    };
    let timed = timed(filter, theirs.covered, round).await;
    let Some(comparison) = round.found.last_mut() else {
        return;
    };
    match timed {
        Ok((filter, ours)) => {
            comparison.asked += &format!("; timed: {}", super::in_words(&filter));
            let found = theirs.held_against(&filter, &ours);
            if found.count > 0 {
                comparison.differs(found);
            }
            time(&mut node, patience, &filter, &ours, round).await;
        }
        Err(why) => comparison.ends_with(why),
    }
}

/// The node's rows that a page was judged by.
struct Theirs {
    rows: Vec<Row>,
    /// The blocks that the page covers.
    covered: Blocks,
}

impl Theirs {
    /// What the service gives of some of the blocks, held against them.
    fn held_against(&self, filter: &LogFilter, ours: &Ours) -> Differences {
        let within =
            |row: &&Row| filter.from <= Some(row.log.block_number) && Some(row.log.block_number) <= filter.to;
        let theirs: Vec<_> = self.rows.iter().filter(within).cloned().collect();
        differences(&ours.rows, &theirs)
    }
}

/// Holds a page against the node's rows: the verdict is among what was found from then on, whatever comes of the times.
async fn judged<O: Other>(
    node: &mut O,
    patience: &mut Patience,
    filter: &LogFilter,
    round: &mut Round<'_>,
) -> Result<Theirs, Lacking> {
    let before = match filter.page.checked_sub(1) {
        None | Some(0) => None,
        Some(before) => ends(&round.ours(&filter.clone().page(before)).await?.rows).map(|(_, last)| last),
    };
    let page = Page {
        filter,
        before,
        rows: round.ours(filter).await?.rows,
    };
    let possible = page.possible(round);
    let covered = blocks_of(&page.rows).unwrap_or(possible);
    let (rows, mut limited) = theirs(node, patience, filter, possible, covered).await?;
    let asked = if limited.is_none() { possible } else { covered };
    let mut found = differences(&page.rows, &page.out_of(&rows, asked, limited.is_none()));
    if let (Some((first, _)), None) = (ends(&page.rows), &limited) {
        match rows_before(node, patience, filter, first, round.facts.first_block).await {
            Ok(before) if before == filter.skip() => {}
            Ok(before) => {
                found.count += before.abs_diff(filter.skip());
                found.told.push(format!(
                    "the page begins behind {before} rows of the node, not behind {}",
                    filter.skip()
                ));
            }
            Err(why) => limited = Some(why),
        }
    }
    if page.rows.len() as u64 > filter.offset {
        found.count += 1;
        let told = format!("{} rows on a page of {}", page.rows.len(), filter.offset);
        found.told.insert(0, told);
    }
    let mut asked = format!("{}: {}", super::in_words(filter), blocks(asked));
    if filter.either.is_some() {
        asked += "; the node in two requests one after the other, since a filter of its cannot say `or`";
    }
    let verdict = match round.verdict(page.rows.len(), found) {
        Verdict::Equal if limited.is_some() => Verdict::Partly,
        verdict => verdict,
    };
    let mut comparison = Comparison::untimed(super::NODE, asked, verdict, page.rows.len() as u64);
    comparison.limited = limited;
    round.found.push(comparison);
    Ok(Theirs { rows, covered })
}

/// So many rows before a page are asked of a node, to be counted.
const COUNTED_MAX: u64 = 100_000;

/// How many rows of a filter the node has before a place, in blocks from `first_block` on where the filter names none; or why that is
/// not known.
async fn rows_before<O: Other>(
    node: &mut O,
    patience: &mut Patience,
    filter: &LogFilter,
    place: Place,
    first_block: u64,
) -> Result<u64, String> {
    let skip = filter.skip();
    let of = |why: &str| format!("where the page begins was not counted, which is behind {skip} rows: {why}");
    match skip {
        0 => return Ok(0),
        1..=COUNTED_MAX => {}
        _ => return Err(of("those are too many to ask for")),
    }
    if let Some(why) = &patience.spared {
        return Err(of(why));
    }
    let before = filter.clone().within(filter.from.unwrap_or(first_block), place.0);
    match patience.in_time(node.logs(&before)).await {
        Ok(rows) => Ok(rows.iter().filter(|row| row.place() < place).count() as u64),
        Err(refusal) => {
            if refusal.is_late {
                patience.spared = Some(format!("an earlier question: {}", refusal.why));
            }
            Err(of(&refusal.why))
        }
    }
}

/// Block and log index.
type Place = (u64, u64);

/// A page of the service.
struct Page<'a> {
    filter: &'a LogFilter,
    /// The last row of the page before, where there is one.
    before: Option<Place>,
    rows: Vec<Row>,
}

impl Page<'_> {
    const fn is_full(&self) -> bool {
        self.rows.len() as u64 >= self.filter.offset
    }

    /// The blocks in which its rows could lie: those before the first page's rows too, of a later page those behind the page
    /// before; and those after a page's that is not full.
    fn possible(&self, round: &Round<'_>) -> Blocks {
        let (first, last) = (
            self.filter.from.unwrap_or(round.facts.first_block),
            self.filter.to.unwrap_or(round.facts.head),
        );
        match blocks_of(&self.rows) {
            None => (first, last),
            Some((from, to)) => (
                match self.before {
                    Some((before, _)) => before.min(from),
                    None if self.filter.page == 1 => first,
                    None => from,
                },
                if self.is_full() { to } else { last },
            ),
        }
    }

    /// The page out of the node's rows of the blocks that it was asked for: from its beginning where all that are possible were,
    /// else from the service's first row on; to the service's last row where the page is full. Rows of other blocks do not
    /// belong there, and stay to be seen.
    fn out_of(&self, theirs: &[Row], asked: Blocks, is_whole: bool) -> Vec<Row> {
        let Some((first, last)) = ends(&self.rows) else {
            // The service has nothing there: whatever comes after the pages before is too much.
            let before = usize::try_from(self.filter.skip()).unwrap_or(usize::MAX);
            return theirs.iter().skip(before).cloned().collect();
        };
        let is_late_enough = |place: Place| match self.before {
            _ if !is_whole => first <= place,
            Some(before) => before < place,
            None => self.filter.page == 1 || first <= place,
        };
        let is_open = is_whole && !self.is_full();
        let within = |row: &&Row| {
            let (place, block) = (row.place(), row.log.block_number);
            let is_asked = asked.0 <= block && block <= asked.1;
            !is_asked || (is_late_enough(place) && (is_open || place <= last))
        };
        theirs.iter().filter(within).cloned().collect()
    }
}

/// The first and the last place of rows, also of rows that are out of order.
fn ends(rows: &[Row]) -> Option<(Place, Place)> {
    let places = || rows.iter().map(Row::place);
    places().min().zip(places().max())
}

/// The blocks of rows.
fn blocks_of(rows: &[Row]) -> Option<Blocks> {
    ends(rows).map(|((first, _), (last, _))| (first, last))
}

/// The node's rows of all blocks that are possible, or of those that are covered, and why not of the others.
async fn theirs<O: Other>(
    node: &mut O,
    patience: &mut Patience,
    filter: &LogFilter,
    possible: Blocks,
    covered: Blocks,
) -> Result<(Vec<Row>, Option<String>), String> {
    let of = |(from, to)| filter.clone().within(from, to);
    if possible == covered {
        return Ok((patience.wait(node.logs(&of(covered))).await?, None));
    }
    let why = match patience.spared.clone() {
        Some(why) => why,
        None => match patience.in_time(node.logs(&of(possible))).await {
            Ok(rows) => {
                patience.came();
                return Ok((rows, None));
            }
            // An answer, and there would be none to a smaller question either.
            Err(refusal) if refusal.is_rest => {
                patience.came();
                return Err(refusal.why);
            }
            Err(refusal) => {
                if refusal.is_late {
                    patience.spared = Some(format!("an earlier question: {}", refusal.why));
                }
                refusal.why
            }
        },
    };
    let rows = patience.wait(node.logs(&of(covered))).await?;
    let limited = format!(
        "only {} were asked for, whose rows the service gave, and not all of {}: {why}",
        blocks(covered),
        blocks(possible)
    );
    Ok((rows, Some(limited)))
}

/// The filter over the blocks that a page's rows cover, all of whose rows fit on one page of the service, and these rows; or
/// why both cannot be timed over such blocks.
async fn timed(
    filter: &LogFilter,
    (first, last): Blocks,
    round: &mut Round<'_>,
) -> Result<(LogFilter, Ours), Lacking> {
    let of_blocks = |from, to| LogFilter {
        page: 1,
        offset: PAGE,
        ..filter.clone().within(from, to)
    };
    let whole = of_blocks(first, last);
    let ours = round.ours(&whole).await?;
    // A page that is full may be cut within its last block.
    let Some((_, cut)) = blocks_of(&ours.rows).filter(|_| ours.rows.len() as u64 >= PAGE) else {
        return Ok((whole, ours));
    };
    if cut <= first {
        return Err(format!("block {cut} alone has as many matching logs as a page").into());
    }
    let fewer = of_blocks(first, cut - 1);
    let ours = round.ours(&fewer).await?;
    Ok((fewer, ours))
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
