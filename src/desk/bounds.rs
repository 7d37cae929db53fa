//! What a block that was asked for means, given how far the index and the node are.

use crate::http::{HttpError, Params, parse_u64};
use crate::model::BlockRange;

use super::caching::Reach;
use super::faults::{BLOCK_NOT_FOUND, INVALID_RANGE, never_indexed, still_indexing};

/// Blocks by which the index may trail the node before what lies beyond the indexed head counts as not
/// indexed. At the tip the node is a block ahead for a moment after each block, and answers to "the
/// block before now" must not flicker with it.
const TIP_LAG_BLOCKS_MAX: u64 = 5;

/// How far a snapshot and its node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First indexed block.
    pub(crate) first: u64,
    /// Last indexed block.
    pub(crate) head: u64,
    /// The node's head as last heard of; never below `head`.
    pub(crate) node_head: u64,
    /// The highest block that the node can have by now: its head while that word is new, later what it can have grown
    /// to. Only above it is there certainly nothing.
    pub(crate) node_limit: u64,
}

/// A word that this process heard from the node and that is not older than these seconds is how things are.
pub(crate) const WORD_FRESH_SECONDS: u64 = 60;
/// A chain may have grown this many times as fast as it did so far.
const GROWTH_FACTOR: u64 = 2;

/// Blocks, and the seconds that they took.
pub(crate) type Pace = (u64, u64);

/// How far a chain can have come from block `number` in some seconds, by the fastest of its paces so far.
pub(crate) fn reachable(number: u64, elapsed: u64, paces: &[Pace]) -> u64 {
    let told = paces
        .iter()
        .copied()
        .filter(|&(blocks, seconds)| blocks > 0 && seconds > 0);
    let faster = |a: &Pace, b: &Pace| {
        let (a, b) = (
            u128::from(a.0) * u128::from(b.1),
            u128::from(b.0) * u128::from(a.1),
        );
        a.cmp(&b)
    };
    // No chain in sight makes more than four blocks a second for long; one that tells no pace is taken for such.
    let (blocks, seconds) = told.max_by(faster).unwrap_or((4, 1));
    let grown = u128::from(elapsed) * u128::from(blocks.saturating_mul(GROWTH_FACTOR));
    number.saturating_add(u64::try_from(grown.div_ceil(u128::from(seconds))).unwrap_or(u64::MAX))
}

/// Whether an index that ends at `head` trails its node by more than what is usual at the tip.
const fn is_behind(head: u64, node_head: u64) -> bool {
    node_head.saturating_sub(head) > TIP_LAG_BLOCKS_MAX
}

/// One end of a range, as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The word.
    Latest,
    /// A number.
    Number(u64),
}

/// Both ends of a range, as given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) from: Option<Bound>,
    pub(crate) to: Option<Bound>,
}

impl Bounds {
    /// Takes both ends; numbers the wrong way round are refused before anything is looked up.
    pub(crate) fn take(params: &mut Params, from: &str, to: &str) -> Result<Self, HttpError> {
        let wrong_way_round = match (params.decimal(from), params.decimal(to)) {
            (Some(from), Some(to)) => from > to,
            _ => false,
        };
        let bounds = Self {
            from: take_bound(params, from)?,
            to: take_bound(params, to)?,
        };
        if wrong_way_round {
            return Err(HttpError::bad_request(INVALID_RANGE));
        }
        Ok(bounds)
    }

    /// The blocks meant; `None` when the range lies wholly above the indexed head and will fill later.
    pub(crate) fn resolve(self, extent: Extent) -> Result<Option<BlockRange>, HttpError> {
        let last = match self.to {
            None | Some(Bound::Latest) => extent.head,
            // Clients send 99999999 for "no end".
            Some(Bound::Number(number)) if number > extent.node_limit => extent.head,
            Some(Bound::Number(number)) if extent.first <= number && number <= extent.head => number,
            Some(Bound::Number(number)) => return Err(extent.without(number)),
        };
        let first = match self.from {
            // Said or not, 0 means the start of what this store holds.
            None | Some(Bound::Number(0)) => extent.first,
            Some(Bound::Latest) => extent.head,
            Some(Bound::Number(number)) if number < extent.first => return Err(never_indexed()),
            Some(Bound::Number(number)) => number,
        };
        match BlockRange::new(first, last) {
            Some(range) => Ok(Some(range)),
            None if last < extent.head => Err(HttpError::bad_request(INVALID_RANGE)),
            None => Ok(None),
        }
    }
}

impl Bounds {
    /// What a list over these blocks speaks of, where they are what `resolve` made of the bounds: only an end
    /// that was given as a number stays where it is.
    pub(crate) fn reach(self, range: BlockRange) -> Reach {
        match (self.from, self.to) {
            (Some(Bound::Latest), _) => Reach::Head,
            (_, Some(Bound::Number(number))) if number == range.last() => Reach::UpTo(number),
            _ => Reach::Head,
        }
    }
}

/// A single block, as given; `latest` by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskedBlock {
    name: &'static str,
    bound: Bound,
}

/// Takes a single block.
pub(crate) fn take_block(params: &mut Params, name: &'static str) -> Result<AskedBlock, HttpError> {
    let bound = take_bound(params, name)?.unwrap_or(Bound::Latest);
    Ok(AskedBlock { name, bound })
}

impl AskedBlock {
    /// The block meant by the parameter `name`.
    pub(crate) const fn new(name: &'static str, bound: Bound) -> Self {
        Self { name, bound }
    }

    /// The indexed block meant; one above the node's head is refused as no block at all.
    pub(crate) fn indexed(self, extent: Extent) -> Result<u64, HttpError> {
        match self.bound {
            Bound::Latest => Ok(extent.head),
            Bound::Number(number) if number > extent.node_limit => Err(HttpError::invalid(self.name)),
            Bound::Number(number) if (extent.first..=extent.head).contains(&number) => Ok(number),
            Bound::Number(number) => Err(extent.without(number)),
        }
    }

    /// What an answer about the block meant speaks of.
    pub(crate) const fn reach(self, number: u64) -> Reach {
        match self.bound {
            Bound::Latest => Reach::Head,
            Bound::Number(_) => Reach::UpTo(number),
        }
    }
}

fn take_bound(params: &mut Params, name: &str) -> Result<Option<Bound>, HttpError> {
    match params.take(name)? {
        None => Ok(None),
        Some(text) if text == "latest" => Ok(Some(Bound::Latest)),
        Some(text) => parse_u64(&text)
            .map(|number| Some(Bound::Number(number)))
            .ok_or_else(|| HttpError::invalid(name)),
    }
}

impl Extent {
    /// Whether the index may trail its node by more than what is usual at the tip, as far as that can have come by now.
    pub(crate) const fn is_behind(self) -> bool {
        is_behind(self.head, self.node_limit)
    }

    /// The same as far as the node was heard to have come.
    pub(crate) const fn is_known_to_be_behind(self) -> bool {
        is_behind(self.head, self.node_head)
    }

    /// Lets an indexed block pass and says of any other why it cannot be shown.
    pub(crate) fn check_block(self, number: u64) -> Result<(), HttpError> {
        if number > self.node_limit {
            Err(HttpError::not_found(BLOCK_NOT_FOUND))
        } else if self.first <= number && number <= self.head {
            Ok(())
        } else {
            Err(self.without(number))
        }
    }

    /// 503 for a block that is not indexed: never, where it lies before the first one.
    fn without(self, number: u64) -> HttpError {
        match number < self.first {
            true => never_indexed(),
            false => still_indexing(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_asked_for() {
        let asked = |query: &str| take_block(&mut Params::parse(query, |_| Some("block")), "block");
        let indexed = |query: &str| asked(query).and_then(|asked| asked.indexed(EXTENT));
        assert_eq!((indexed(""), indexed("block=latest")), (Ok(100), Ok(100)));
        assert_eq!((indexed("block=10"), indexed("block=100")), (Ok(10), Ok(100)));
        let invalid = HttpError::invalid("block");
        assert_eq!(indexed("block=201"), Err(invalid.clone()));
        assert_eq!(indexed("block=-1"), Err(invalid));
        assert_eq!(indexed("block=9"), Err(never_indexed()));
        for later in ["block=101", "block=200"] {
            assert_eq!(indexed(later), Err(still_indexing()));
        }
    }

    const EXTENT: Extent = Extent {
        first: 10,
        head: 100,
        node_head: 200,
        node_limit: 200,
    };

    fn resolve(query: &str) -> Result<Option<(u64, u64)>, u16> {
        let mut params = Params::parse(query, |key| ["from", "to"].into_iter().find(|name| *name == key));
        Bounds::take(&mut params, "from", "to")
            .and_then(|bounds| bounds.resolve(EXTENT))
            .map(|range| range.map(|range| (range.first(), range.last())))
            .map_err(|error| error.status().code().as_u16())
    }

    #[test]
    fn ranges() {
        type Expected = Result<Option<(u64, u64)>, u16>;
        let table: [(&str, Expected); 23] = [
            ("", Ok(Some((10, 100)))),
            ("to=latest", Ok(Some((10, 100)))),
            ("from=latest", Ok(Some((100, 100)))),
            ("from=20&to=30", Ok(Some((20, 30)))),
            ("from=20&to=20", Ok(Some((20, 20)))),
            ("from=10&to=100", Ok(Some((10, 100)))),
            ("from=30&to=20", Err(400)),
            ("from=900&to=800", Err(400)),
            ("from=latest&to=99", Err(400)),
            ("from=latest&to=100", Ok(Some((100, 100)))),
            ("from=50&to=101", Err(503)),
            ("from=50&to=200", Err(503)),
            ("from=50&to=201", Ok(Some((50, 100)))),
            ("from=50&to=18446744073709551615", Ok(Some((50, 100)))),
            ("to=18446744073709551616", Ok(Some((10, 100)))),
            ("from=101", Ok(None)),
            ("from=101&to=latest", Ok(None)),
            ("from=300&to=400", Ok(None)),
            ("from=9", Err(503)),
            ("from=0&to=50", Ok(Some((10, 50)))),
            ("from=1&to=50", Err(503)),
            ("to=9", Err(503)),
            ("from=x", Err(400)),
        ];
        for (query, expected) in table {
            assert_eq!(resolve(query), expected, "{query:?}");
        }
    }

    #[test]
    fn only_an_end_that_was_given_is_final() {
        let reach = |query: &str| {
            let mut params = Params::parse(query, |key| ["from", "to"].into_iter().find(|name| *name == key));
            let bounds = Bounds::take(&mut params, "from", "to").unwrap();
            bounds.reach(bounds.resolve(EXTENT).unwrap().unwrap())
        };
        assert_eq!(reach("to=50"), Reach::UpTo(50));
        assert_eq!(reach("from=20&to=100"), Reach::UpTo(100));
        for query in ["", "from=20", "to=latest", "to=99999999", "from=latest&to=100"] {
            assert_eq!(reach(query), Reach::Head, "{query:?}");
        }
    }

    #[test]
    fn a_word_that_gets_old() {
        let (twelve, one) = ((1000, 12_000), (100, 100));
        assert_eq!(reachable(500, 0, &[twelve]), 500);
        assert_eq!(reachable(500, 1, &[twelve]), 501);
        assert_eq!(reachable(500, 120, &[twelve]), 520);
        assert_eq!(reachable(500, 86_400, &[twelve]), 500 + 14_400);
        assert_eq!(reachable(500, 60, &[twelve, one]), 620);
        assert_eq!(reachable(500, 60, &[one, (0, 7), twelve, (7, 0)]), 620);
        assert_eq!(reachable(0, 100, &[(0, 0)]), 800);
        assert_eq!(reachable(7, u64::MAX, &[(u64::MAX, 1)]), u64::MAX);
    }

    #[test]
    fn what_the_node_may_have_by_now_is_not_indexed() {
        let extent = Extent {
            node_limit: 300,
            ..EXTENT
        };
        let code = |number| {
            extent
                .check_block(number)
                .map_err(|error| error.status().code().as_u16())
        };
        assert_eq!((code(201), code(300), code(301)), (Err(503), Err(503), Err(404)));
        let mut params = Params::parse("from=50&to=250", |key| {
            ["from", "to"].into_iter().find(|name| *name == key)
        });
        let bounds = Bounds::take(&mut params, "from", "to").unwrap();
        assert_eq!(bounds.resolve(extent), Err(still_indexing()));
        let past = Extent {
            node_limit: 249,
            ..extent
        };
        assert_eq!(bounds.resolve(past).unwrap().map(|range| range.last()), Some(100));
    }

    #[test]
    fn single_blocks() {
        let check = |number| {
            EXTENT
                .check_block(number)
                .map_err(|error| error.status().code().as_u16())
        };
        assert_eq!(check(9), Err(503));
        assert_eq!(check(10), Ok(()));
        assert_eq!(check(100), Ok(()));
        assert_eq!(check(101), Err(503));
        assert_eq!(check(200), Err(503));
        assert_eq!(check(201), Err(404));
    }
}
