//! The hashes by which code names its metadata: IPFS (CIDv0) and the two of Swarm.

use alloy_primitives::keccak256;
use sha2::{Digest, Sha256};

use crate::model::B256;

/// How a hash is made of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HashKind {
    /// SHA2-256 of the root block that `ipfs add` makes: the digest in a CIDv0.
    Ipfs,
    /// Swarm's hash over binary Merkle trees.
    Bzzr1,
    /// Swarm's first hash.
    Bzzr0,
}

impl std::fmt::Display for HashKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ipfs => "ipfs",
            Self::Bzzr1 => "bzzr1",
            Self::Bzzr0 => "bzzr0",
        })
    }
}

/// The digest of these bytes.
pub(super) fn digest(kind: HashKind, bytes: &[u8]) -> B256 {
    match kind {
        HashKind::Ipfs => ipfs(bytes),
        HashKind::Bzzr1 => bzzr1(bytes, false),
        HashKind::Bzzr0 => bzzr0(bytes),
    }
}

/// Bytes of a leaf.
const IPFS_CHUNK: usize = 256 << 10;
/// Links of a node.
const IPFS_LINKS: usize = 174;

/// A block of the graph: its digest, the bytes of the file below it, and of all blocks from it down.
struct Block {
    digest: B256,
    file: u64,
    total: u64,
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A protobuf field that holds bytes.
fn field(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn sha256(bytes: &[u8]) -> B256 {
    B256::from(<[u8; 32]>::from(Sha256::digest(bytes)))
}

fn leaf(chunk: &[u8]) -> Block {
    // UnixFS: type 2 (a file), its data, its size.
    let mut data = vec![0x08, 0x02];
    if !chunk.is_empty() {
        field(&mut data, 0x12, chunk);
    }
    data.push(0x18);
    varint(&mut data, chunk.len() as u64);
    let mut block = Vec::with_capacity(data.len() + 8);
    field(&mut block, 0x0a, &data);
    Block {
        digest: sha256(&block),
        file: chunk.len() as u64,
        total: block.len() as u64,
    }
}

fn node(links: &[Block]) -> Block {
    let (mut block, mut sizes) = (Vec::new(), Vec::new());
    let file: u64 = links.iter().map(|link| link.file).sum();
    for link in links {
        let mut entry = Vec::with_capacity(50);
        let multihash = [&[0x12, 0x20], link.digest.as_slice()].concat();
        field(&mut entry, 0x0a, &multihash);
        field(&mut entry, 0x12, b"");
        entry.push(0x18);
        varint(&mut entry, link.total);
        field(&mut block, 0x12, &entry);
        sizes.push(0x20);
        varint(&mut sizes, link.file);
    }
    let mut data = vec![0x08, 0x02, 0x18];
    varint(&mut data, file);
    data.extend_from_slice(&sizes);
    field(&mut block, 0x0a, &data);
    let below: u64 = links.iter().map(|link| link.total).sum();
    Block {
        digest: sha256(&block),
        file,
        total: below + block.len() as u64,
    }
}

fn ipfs(bytes: &[u8]) -> B256 {
    let mut level: Vec<Block> = if bytes.is_empty() {
        vec![leaf(bytes)]
    } else {
        bytes.chunks(IPFS_CHUNK).map(leaf).collect()
    };
    while level.len() > 1 {
        level = level.chunks(IPFS_LINKS).map(node).collect();
    }
    level.first().map(|root| root.digest).unwrap_or_default()
}

/// Bytes of a chunk of Swarm.
const CHUNK: usize = 4096;
/// Hashes in a chunk.
const BRANCHES: usize = CHUNK / 32;

/// What one reference stands for, where more than a chunk is to be referred to.
fn represented(len: usize) -> usize {
    let mut size = CHUNK;
    while size * BRANCHES < len {
        size *= BRANCHES;
    }
    size
}

fn with_length(len: usize, rest: &[u8]) -> B256 {
    keccak256([(len as u64).to_le_bytes().as_slice(), rest].concat())
}

fn bzzr0(bytes: &[u8]) -> B256 {
    if bytes.len() <= CHUNK {
        return with_length(bytes.len(), bytes);
    }
    let parts = bytes.chunks(represented(bytes.len())).map(bzzr0);
    let inner: Vec<u8> = parts.flat_map(|part| part.0).collect();
    with_length(bytes.len(), &inner)
}

fn merkle(bytes: &[u8]) -> B256 {
    if bytes.len() <= 64 {
        return keccak256(bytes);
    }
    let (left, right) = bytes.split_at(bytes.len() / 2);
    keccak256([merkle(left).0, merkle(right).0].concat())
}

/// `higher`: a whole chunk is referred to once more, as its neighbours are.
fn bzzr1(bytes: &[u8], higher: bool) -> B256 {
    if bytes.is_empty() {
        return B256::ZERO;
    }
    let mut inner = if bytes.len() < CHUNK || (bytes.len() == CHUNK && !higher) {
        bytes.to_vec()
    } else {
        let size = represented(bytes.len());
        let parts = bytes.chunks(size).map(|part| bzzr1(part, size > CHUNK));
        parts.flat_map(|part| part.0).collect()
    };
    inner.resize(CHUNK, 0);
    with_length(bytes.len(), merkle(&inner).as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        // `ipfs add` of "hello world\n": QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o.
        let known = "46d44814b9c5af141c3aaab7c05dc5e844ead5f91f12858b021eba45768b4c0e";
        assert_eq!(const_hex::encode(digest(HashKind::Ipfs, b"hello world\n")), known);
        // The empty file: QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH.
        let known = "bfccda787baba32b59c78450ac3d20b633360b43992c77289f9ed46d843561e6";
        assert_eq!(const_hex::encode(digest(HashKind::Ipfs, b"")), known);
        assert_eq!(digest(HashKind::Bzzr1, b""), B256::ZERO);
    }

    #[test]
    fn trees_depend_on_every_byte() {
        for len in [1, 4095, 4096, 4097, 128 * 4096, 128 * 4096 + 1, (256 << 10) + 1] {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            for kind in [HashKind::Ipfs, HashKind::Bzzr0, HashKind::Bzzr1] {
                let whole = digest(kind, &bytes);
                for at in [0, len / 2, len - 1] {
                    let mut other = bytes.clone();
                    other[at] ^= 1;
                    assert_ne!(digest(kind, &other), whole, "{kind:?} {len} {at}");
                }
            }
        }
    }
}
