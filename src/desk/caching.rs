//! What caches may do with an operation's answer: what it speaks of, and the tags made from that.

use crate::http::{Delivery, EntityTag, Lifetime, Request, Response, header, parse_quantity, parse_u64};
use crate::model::B256;

use super::answer::Snapshot;
use super::kept::KeptKey;

/// What an answer speaks of. It decides whether the answer can ever be another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The indexed head, the node, or facts that an operator may import: it may be another one soon.
    #[default]
    Head,
    /// Blocks up to this number and nothing else. Nothing in it counts from the head (`confirmations` does),
    /// and no block that comes later could change it.
    UpTo(u64),
    /// Final blocks and nothing else, as above.
    Final,
}

impl Reach {
    /// What an answer about one transaction speaks of.
    pub(crate) const fn of_transaction(is_final: bool) -> Self {
        if is_final { Self::Final } else { Self::Head }
    }

    /// Whether all of it is final.
    pub(crate) fn is_final(self, finalized: Option<u64>) -> bool {
        match self {
            Self::Head => false,
            Self::UpTo(number) => finalized.is_some_and(|finalized| number <= finalized),
            Self::Final => true,
        }
    }
}

/// A request on a snapshot: everything that determines a body, before it is made.
///
/// The address stands as it came: that is what caches know an answer by. So does `Accept` where it names
/// another form of lists; elsewhere it changes nothing.
pub(crate) struct Determinants<'a> {
    snapshot: &'a Snapshot,
    chain_id: [u8; 8],
    first_block: [u8; 8],
    genesis: &'a [u8],
    head: B256,
    revision: [u8; 8],
    facts: [u8; 8],
    path: &'a str,
    query: &'a str,
    accept: Vec<u8>,
    upload: &'a [u8],
}

impl<'a> Determinants<'a> {
    pub(crate) fn new(request: &'a Request, snapshot: &'a Snapshot) -> Self {
        let reader = &snapshot.reader;
        let identity = reader.view().identity();
        let accepts = || {
            request
                .headers()
                .get_all(header::ACCEPT)
                .iter()
                .map(|value| value.as_bytes())
        };
        let names_lines = |accept: &[u8]| accept.windows(6).any(|word| word.eq_ignore_ascii_case(b"ndjson"));
        let accept = if accepts().any(names_lines) {
            // A byte that no header holds: a line that is not text counts for nothing, and would hide in one with others.
            accepts().collect::<Vec<_>>().join(&b'\n')
        } else {
            Vec::new()
        };
        Self {
            snapshot,
            chain_id: identity.chain_id.to_be_bytes(),
            first_block: identity.first_block.to_be_bytes(),
            genesis: &identity.genesis_hash,
            head: reader.head().hash,
            revision: reader.revision().to_be_bytes(),
            facts: reader.facts_revision().to_be_bytes(),
            path: request.path(),
            query: request.query(),
            accept,
            upload: request.upload(),
        }
    }

    /// What the node's head, as this process knows it, decides about a list beside the indexed head: whether the index may be
    /// behind, and of each number above the indexed head whether there can be such a block yet. It is the same while nothing of
    /// that changes, though the node goes on. To be asked before the work, for the node may say another thing after it.
    pub(crate) fn above(&self) -> Vec<u8> {
        let extent = self.snapshot.extent();
        let (head, limit) = (extent.head, extent.node_limit);
        let mut above = vec![u8::from(extent.is_behind())];
        if self.query.contains('%') || !self.upload.is_empty() {
            // Numbers may be in there.
            above.extend_from_slice(&limit.to_be_bytes());
        }
        let numbers = self.query.split(['&', '=']).filter_map(number);
        let numbers = numbers.filter(|&number| number > head);
        above.extend(numbers.map(|number| u8::from(number > limit)));
        above
    }

    /// The tag of a list on this snapshot, with what was [`above`](Self::above) it.
    pub(crate) fn tag(&self, above: &[u8]) -> EntityTag {
        self.tag_with(&[self.head.as_slice(), &self.revision, &self.facts, above])
    }

    /// The tag of an answer that is final: new blocks leave it as it is. A node that shows the ledger of balances to be wrong does
    /// not.
    pub(crate) fn final_tag(&self) -> EntityTag {
        let differs = self.snapshot.reader.native_differs().is_some();
        self.tag_with(if differs { &[b"differs"] } else { &[] })
    }

    fn tag_with(&self, rest: &[&[u8]]) -> EntityTag {
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        let parts = [
            version,
            &self.chain_id,
            &self.first_block,
            self.genesis,
            self.path.as_bytes(),
            self.query.as_bytes(),
            &self.accept,
            self.upload,
        ];
        EntityTag::of(parts.into_iter().chain(rest.iter().copied()))
    }

    /// The key by which an answer is kept as it goes out; `None` where the client says what it has, or wants no body.
    pub(crate) fn kept_key(&self, delivery: &Delivery) -> Option<KeptKey> {
        let (form, snapshot) = (delivery.form()?, self.snapshot);
        // How far the node is decides which blocks may be asked for, and its words which are `safe` and `finalized`.
        let status = snapshot.status.as_ref();
        let extent = status.map(|_| snapshot.extent());
        let words = status.map_or([None; 2], |status| [status.safe(), status.finalized()]);
        let [safe, finalized] = words.map(|number| number.map_or([0xff; 8], u64::to_be_bytes));
        let [node_head, node_limit] = extent
            .map_or([0; 2], |extent| [extent.node_head, extent.node_limit])
            .map(u64::to_be_bytes);
        let parts: [&[u8]; 15] = [
            form.as_bytes(),
            &self.chain_id,
            &self.first_block,
            self.genesis,
            self.head.as_slice(),
            &self.revision,
            &self.facts,
            &node_head,
            &node_limit,
            &safe,
            &finalized,
            self.path.as_bytes(),
            self.query.as_bytes(),
            &self.accept,
            self.upload,
        ];
        let mut key = Vec::with_capacity(parts.iter().map(|part| part.len() + 4).sum());
        for part in parts {
            key.extend_from_slice(&(part.len() as u32).to_be_bytes());
            key.extend_from_slice(part);
        }
        Some(key.into_boxed_slice())
    }

    /// How long an answer that speaks of `reach` lasts, and its tag where that need not be made of its bytes:
    /// a final answer's, which a client may name before anything is looked up.
    pub(crate) fn judge(&self, reach: Reach) -> (Lifetime, Option<EntityTag>) {
        if reach.is_final(self.snapshot.reader.finalized()) {
            (Lifetime::Immutable, Some(self.final_tag()))
        } else {
            (Lifetime::Revalidate, None)
        }
    }

    /// 304 where the client has what would be answered, before any of it is looked up.
    ///
    /// A tag of either kind was only ever given with an answer to this request on this snapshot, or with one
    /// that was final; so there is no need to know which kind of answer this would be.
    pub(crate) fn unchanged(&self, delivery: &Delivery, above: &[u8]) -> Option<Response> {
        if !delivery.is_conditional() {
            return None;
        }
        let tags = [
            (self.final_tag(), Lifetime::Immutable),
            (self.tag(above), Lifetime::Revalidate),
        ];
        let (tag, lifetime) = tags.into_iter().find(|(tag, _)| delivery.has(tag))?;
        Some(delivery.unchanged(&tag, lifetime))
    }
}

/// A number in any of the forms that a dialect takes.
fn number(text: &str) -> Option<u64> {
    // However long: addresses and topics count as above any block, or as some block.
    parse_u64(text).or_else(|| parse_quantity(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach() {
        let table = [
            (Reach::Head, Some(u64::MAX), false),
            (Reach::UpTo(0), None, false),
            (Reach::UpTo(5), Some(4), false),
            (Reach::UpTo(5), Some(5), true),
            (Reach::Final, None, true),
        ];
        for (reach, finalized, expected) in table {
            assert_eq!(reach.is_final(finalized), expected, "{reach:?} {finalized:?}");
        }
    }
}
