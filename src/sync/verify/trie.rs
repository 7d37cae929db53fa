//! The root of the trie from the place of each item to the item, as headers state it for transactions, receipts and
//! withdrawals.
//!
//! The keys are known beforehand: every leaf can be written as soon as its item is, and all of them are hashed at
//! once. An item is encoded once, behind room for the head of its leaf.

use alloy_primitives::{B256, keccak256};
use alloy_trie::EMPTY_ROOT_HASH;

use crate::sync::encoding::{put_bytes, put_length};
use crate::sync::keccak::keccak256_each;

/// Room for the head of a leaf: list, path and string, of at most nine, ten and nine bytes.
const ROOM: usize = 32;

/// Nodes shorter than this stand in their parent as they are.
const HASHED_MIN: usize = 32;

/// Items of a block, one after another in one buffer.
#[derive(Debug, Default)]
pub(super) struct Items {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    hashes: Vec<B256>,
    trie: Trie,
}

/// Where an item lies.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
}

impl Items {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Appends an item that `put` writes; it is kept also when `put` gives an error.
    pub(super) fn put<T>(&mut self, put: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.bytes.extend_from_slice(&[0; ROOM]);
        let start = self.bytes.len();
        let said = put(&mut self.bytes);
        let end = self.bytes.len();
        self.spans.push(Span { start, end });
        said
    }

    /// Hashes of the items.
    pub(super) fn hashes(&mut self) -> &[B256] {
        let items: Vec<&[u8]> = self
            .spans
            .iter()
            .map(|span| self.bytes.get(span.start..span.end).unwrap_or(&[]))
            .collect();
        keccak256_each(&items, &mut self.hashes);
        &self.hashes
    }

    /// Root of the trie from the place of each item to the item. The room before the items is used up: it is right
    /// again when called again.
    pub(super) fn root(&mut self) -> B256 {
        let count = self.spans.len();
        if count == 0 {
            return EMPTY_ROOT_HASH;
        }
        self.trie.keys.clear();
        self.trie
            .keys
            .extend((0..count).map(|rank| Key::new(place(rank, count))));
        let mut starts = Vec::with_capacity(count);
        let mut head = Vec::with_capacity(ROOM);
        for rank in 0..count {
            let path = self.trie.leaf_path(rank);
            let span = self.spans.get(place(rank, count));
            starts.push(span.map_or(0, |span| put_leaf_head(&mut self.bytes, *span, path, &mut head)));
        }
        let leaves: Vec<&[u8]> = starts
            .iter()
            .enumerate()
            .map(|(rank, &start)| {
                let end = self.spans.get(place(rank, count)).map_or(start, |span| span.end);
                self.bytes.get(start..end).unwrap_or(&[])
            })
            .collect();
        keccak256_each(&leaves, &mut self.hashes);
        if let [hash] = self.hashes.as_slice() {
            return *hash;
        }
        self.trie.leaves.clear();
        let pairs = leaves.iter().zip(&self.hashes);
        self.trie
            .leaves
            .extend(pairs.map(|(leaf, hash)| Reference::new(leaf, || *hash)));
        self.trie.put_node(0, count, 0);
        keccak256(&self.trie.node)
    }
}

/// Place of the item whose key is the `rank`-th in order: RLP writes 0 as 0x80, behind 1 to 0x7f.
const fn place(rank: usize, count: usize) -> usize {
    match rank {
        0x80.. => rank,
        0x7f => 0,
        _ if rank + 1 == count => 0,
        _ => rank + 1,
    }
}

/// Writes list header, path and string header before an item, by way of `head`; gives the place where they begin.
fn put_leaf_head(bytes: &mut [u8], item: Span, path: &[u8], head: &mut Vec<u8>) -> usize {
    let len = item.end - item.start;
    // A small byte stands for itself.
    let bare = len == 1 && bytes.get(item.start).is_some_and(|byte| *byte < 0x80);
    head.clear();
    put_path(head, path, true);
    if !bare {
        put_length(head, 0x80, len);
    }
    let string = head.len();
    put_length(head, 0xc0, string + len);
    head.rotate_left(string);
    let start = item.start.saturating_sub(head.len());
    if let Some(room) = bytes.get_mut(start..item.start) {
        room.copy_from_slice(head);
    }
    start
}

/// Appends nibbles in hex-prefix encoding (Yellow Paper, appendix C), as an RLP string.
fn put_path(out: &mut Vec<u8>, nibbles: &[u8], leaf: bool) {
    let flag = if leaf { 0x20 } else { 0 };
    let (first, rest) = match nibbles.split_first() {
        Some((first, rest)) if !nibbles.len().is_multiple_of(2) => (flag | 0x10 | first, rest),
        _ => (flag, nibbles),
    };
    let mut path = [first; 1 + KEY_NIBBLES / 2];
    let pairs = rest.as_chunks::<2>().0;
    for (to, [high, low]) in path.iter_mut().skip(1).zip(pairs) {
        *to = high << 4 | low;
    }
    put_bytes(out, path.get(..=pairs.len()).unwrap_or(&[]));
}

/// A key has at most a byte for its length and eight for the place.
const KEY_NIBBLES: usize = 18;

/// The nibbles of the RLP encoding of a place.
#[derive(Clone, Copy, Debug)]
struct Key {
    nibbles: [u8; KEY_NIBBLES],
    len: usize,
}

impl Key {
    fn new(place: usize) -> Self {
        let mut nibbles = [0; KEY_NIBBLES];
        let digits = place.to_be_bytes();
        let zeros = place.leading_zeros() as usize / 8;
        let digits = digits.get(zeros..).unwrap_or(&[]);
        let head = match place {
            1..=0x7f => None,
            _ => Some(0x80 + digits.len() as u8),
        };
        let bytes = head.iter().chain(digits);
        for ([high, low], byte) in nibbles.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            (*high, *low) = (byte >> 4, byte & 0x0f);
        }
        let len = 2 * (usize::from(head.is_some()) + digits.len());
        Self { nibbles, len }
    }

    fn from(&self, depth: usize) -> &[u8] {
        self.nibbles.get(depth..self.len).unwrap_or(&[])
    }

    fn nibble(&self, depth: usize) -> Option<u8> {
        self.nibbles.get(depth).copied()
    }

    /// Number of nibbles that both begin with.
    fn shared(&self, other: &Self) -> usize {
        self.nibbles
            .iter()
            .zip(&other.nibbles)
            .take_while(|(a, b)| a == b)
            .count()
    }
}

/// How a node stands in its parent: as it is, or by its hash.
#[derive(Clone, Copy, Debug)]
struct Reference {
    len: u8,
    bytes: [u8; 33],
}

impl Reference {
    /// No child: the empty string.
    const NONE: Self = {
        let mut bytes = [0; 33];
        bytes[0] = 0x80;
        Self { len: 1, bytes }
    };

    fn new(node: &[u8], hash: impl FnOnce() -> B256) -> Self {
        let mut bytes = [0; 33];
        if node.len() < HASHED_MIN {
            bytes.iter_mut().zip(node).for_each(|(to, byte)| *to = *byte);
            return Self {
                len: node.len() as u8,
                bytes,
            };
        }
        bytes = [0x80 + 32; 33];
        if let Some(word) = bytes.last_chunk_mut::<32>() {
            *word = hash().0;
        }
        Self { len: 33, bytes }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// The nodes above the leaves; all lists are in the order of the keys.
#[derive(Debug, Default)]
struct Trie {
    keys: Vec<Key>,
    leaves: Vec<Reference>,
    /// The node that was written last.
    node: Vec<u8>,
}

impl Trie {
    fn shared(&self, rank: usize, other: usize) -> Option<usize> {
        Some(self.keys.get(rank)?.shared(self.keys.get(other)?))
    }

    /// What is left of a key at its leaf: one nibble more than it shares with either neighbour leads there.
    fn leaf_path(&self, rank: usize) -> &[u8] {
        let before = rank.checked_sub(1).and_then(|before| self.shared(before, rank));
        let depth = before
            .max(self.shared(rank, rank + 1))
            .map_or(0, |shared| shared + 1);
        self.keys.get(rank).map_or(&[], |key| key.from(depth))
    }

    /// Writes the node over the keys of ranks `from` to `end`, two of them at least, which lies `depth` nibbles
    /// down.
    fn put_node(&mut self, from: usize, end: usize, depth: usize) {
        let fork = self.shared(from, end - 1).unwrap_or(depth);
        let mut children = [Reference::NONE; 16];
        let mut first = from;
        while first < end {
            let nibble = self.keys.get(first).and_then(|key| key.nibble(fork));
            let others = self.keys.get(first..end).unwrap_or(&[]);
            let same = others
                .iter()
                .take_while(|key| key.nibble(fork) == nibble)
                .count()
                .max(1);
            let child = self.reference(first, first + same, fork + 1);
            if let Some(place) = children.get_mut(usize::from(nibble.unwrap_or(0))) {
                *place = child;
            }
            first += same;
        }
        // The value of a branch is empty: no key begins another.
        let payload = children.iter().map(|child| usize::from(child.len)).sum::<usize>() + 1;
        self.node.clear();
        put_length(&mut self.node, 0xc0, payload);
        children
            .iter()
            .for_each(|child| self.node.extend_from_slice(child.as_slice()));
        self.node.extend_from_slice(Reference::NONE.as_slice());
        if fork > depth {
            let branch = Reference::new(&self.node, || keccak256(&self.node));
            let mut path = Vec::with_capacity(ROOM);
            let key = self.keys.get(from).map_or(&[][..], |key| key.from(depth));
            put_path(&mut path, key.get(..fork - depth).unwrap_or(&[]), false);
            self.node.clear();
            put_length(&mut self.node, 0xc0, path.len() + usize::from(branch.len));
            self.node.extend_from_slice(&path);
            self.node.extend_from_slice(branch.as_slice());
        }
    }

    fn reference(&mut self, from: usize, end: usize, depth: usize) -> Reference {
        if from + 1 == end {
            return self.leaves.get(from).copied().unwrap_or(Reference::NONE);
        }
        self.put_node(from, end, depth);
        Reference::new(&self.node, || keccak256(&self.node))
    }
}

#[cfg(test)]
mod tests {
    use alloy_trie::root::ordered_trie_root_encoded;
    use proptest::prelude::*;

    use super::*;

    fn root(items: &mut Items, values: &[Vec<u8>]) -> B256 {
        items.clear();
        for value in values {
            items.put(|out| out.extend_from_slice(value));
        }
        items.root()
    }

    #[test]
    fn roots_of_every_count_are_those_of_alloy() {
        let mut items = Items::default();
        // Short items give nodes that stand in their parents as they are.
        for len in [1, 2, 20, 28, 29, 30, 31, 60, 300] {
            let values: Vec<Vec<u8>> = (0..700_usize).map(|seed| vec![(seed % 251) as u8; len]).collect();
            let counts = (0..300).chain([511, 512, 513, 699]);
            for count in counts {
                let values = &values[..count];
                assert_eq!(
                    root(&mut items, values),
                    ordered_trie_root_encoded(values),
                    "{count} of {len}"
                );
            }
        }
    }

    #[test]
    fn a_root_asked_for_twice_is_the_same() {
        let mut items = Items::default();
        let values = vec![vec![7; 100]; 200];
        let expected = root(&mut items, &values);
        assert_eq!(items.hashes(), vec![keccak256(&values[0]); 200]);
        assert_eq!(items.root(), expected);
    }

    proptest! {
        #[test]
        fn roots_are_those_of_alloy(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..80), 0..400),
        ) {
            prop_assert_eq!(root(&mut Items::default(), &values), ordered_trie_root_encoded(&values));
        }
    }
}
