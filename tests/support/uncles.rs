//! Uncles by a chain's own file.

use alloy_rlp::Decodable as _;

/// The uncles' headers of each block of a file of RLP-encoded blocks, in order.
pub(crate) fn uncle_headers(mut rlp: &[u8]) -> Vec<Vec<alloy_consensus::Header>> {
    let mut blocks = Vec::new();
    while !rlp.is_empty() {
        let mut block = alloy_rlp::Header::decode_bytes(&mut rlp, true).unwrap();
        alloy_rlp::Header::decode_bytes(&mut block, true).unwrap();
        alloy_rlp::Header::decode_bytes(&mut block, true).unwrap();
        blocks.push(Vec::decode(&mut block).unwrap());
    }
    blocks
}
