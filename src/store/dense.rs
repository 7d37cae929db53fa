//! Dense terms: contracts and topics whose lists are long, and since when they are.
//!
//! Two long lists that must agree are walked over for what they have in common, which takes as long as they are. So each two dense
//! terms have a list of their own: the logs that both have since both are dense. What comes before that one of them has few postings of, and
//! is soon walked over. A term is dense from the log on with which its list has [`DENSE`] postings, the log included; that ordinal names a topic in the keys
//! of these lists, for a log has one topic at a position.
//!
//! Why so: `docs/decisions/0065-lists-of-pairs.md`.

use super::known::Shards;
use super::schema::Table;
use super::{Direction, FlatArray, PostingCursor, StoreError, View};
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::posting::{self, CHUNK_POSTINGS};

/// So many postings make a list dense: a whole number of chunks.
pub const DENSE: u64 = 16_384;

/// Terms of a part of what is remembered; a full one is emptied. In all 262,144, some 16 MB, where a chain has so many.
const SHARD_MAX: usize = 16_384;

/// Since when terms are dense, as far as that is final: it never changes again.
#[derive(Debug, Default)]
pub(super) struct DenseSince(Shards<Term, u64, SHARD_MAX>);

impl View {
    /// The ordinal of the log since which a contract or a topic is dense; `None` while it is not.
    pub fn dense_since(&self, term: Term) -> Result<Option<u64>, StoreError> {
        let place = term.term_bytes().last().copied().unwrap_or_default();
        let final_logs = self.final_records(FlatArray::LogEmitters);
        // One that is not final in this view may be another one in it.
        if let Some(since) = self.dense.0.get(place, &term)
            && since < final_logs
        {
            return Ok(Some(since));
        }
        let since = PostingCursor::open(self, term, Direction::Forward)?.select(DENSE - 1)?;
        if let Some(since) = since
            && since < final_logs
        {
            self.dense.0.put(place, term, since);
        }
        Ok(since)
    }

    /// All dense contracts and topics, with since when they are: two seeks for each list that is longer than its open piece.
    pub fn dense_terms(&self) -> Result<Vec<(Term, u64)>, StoreError> {
        let name = Table::Postings.name();
        let mut terms = Vec::new();
        let mut chunks = self.scan_all(Table::Postings)?;
        chunks.seek(&[PostingKind::LogAddress as u8])?;
        while let Some((key, value)) = chunks.item()? {
            let (term, last) = Term::decode(key).map_err(StoreError::corrupt(name, key))?;
            if !term.kind().is_paired() {
                break;
            }
            // The last chunk tells how long the list is, but for its open piece.
            if last != keys::OPEN {
                chunks.seek(&term.key(keys::OPEN))?;
                continue;
            }
            let header = posting::header(value).map_err(StoreError::corrupt(name, key))?;
            let is_long = DENSE <= header.rank + (header.count + CHUNK_POSTINGS) as u64;
            if let Some(since) = is_long.then(|| self.dense_since(term)).transpose()?.flatten() {
                terms.push((term, since));
            }
            chunks.step()?;
        }
        Ok(terms)
    }
}
