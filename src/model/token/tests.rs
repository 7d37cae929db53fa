//! Classification: every form, and logs that are none.

use alloy_primitives::keccak256;
use proptest::prelude::*;

use super::*;

fn account(n: u8) -> Address {
    Address::repeat_byte(n)
}

fn topic(n: u8) -> B256 {
    account(n).into_word()
}

fn number(n: u64) -> [u8; 32] {
    U256::from(n).to_be_bytes()
}

fn of<'a>(topics: &[B256], data: &'a [u8]) -> Option<TokenEvent<'a>> {
    TokenEvent::of(&account(0xee), topics, data)
}

#[test]
fn signatures_are_hashes_of_their_declarations() {
    for (topic, declaration) in [
        (TRANSFER, "Transfer(address,address,uint256)"),
        (
            TRANSFER_SINGLE,
            "TransferSingle(address,address,address,uint256,uint256)",
        ),
        (
            TRANSFER_BATCH,
            "TransferBatch(address,address,address,uint256[],uint256[])",
        ),
        (DEPOSIT, "Deposit(address,uint256)"),
        (WITHDRAWAL, "Withdrawal(address,uint256)"),
    ] {
        assert_eq!(topic, keccak256(declaration), "{declaration}");
    }
}

#[test]
fn erc20_and_the_lengths_that_are_not() {
    let topics = [TRANSFER, topic(1), topic(2)];
    let most = U256::MAX.to_be_bytes::<32>();
    for value in [number(0), number(7), most] {
        let expected = TokenEvent::Fungible {
            from: account(1),
            to: account(2),
            value: U256::from_be_bytes(value),
        };
        assert_eq!(of(&topics, &value), Some(expected));
        assert_eq!(expected.kind(), TokenKind::Erc20);
    }
    for len in [0, 1, 31, 33, 64, 96] {
        assert_eq!(of(&topics, &vec![0; len]), None, "{len} bytes");
    }
}

#[test]
fn erc721_of_four_topics_and_of_none_indexed() {
    let id = B256::from(number(5));
    let expected = Some(TokenEvent::Unique {
        from: account(1),
        to: account(2),
        id: U256::from(5),
    });
    assert_eq!(of(&[TRANSFER, topic(1), topic(2), id], &[]), expected);
    assert_eq!(of(&[TRANSFER, topic(1), topic(2), id], &[1, 2, 3]), expected);
    let early = [topic(1).0, topic(2).0, number(5)].concat();
    assert_eq!(of(&[TRANSFER], &early), expected);
    for data in [
        &early[..95],
        &early[..64],
        &[early.as_slice(), &[0]].concat(),
        &[],
    ] {
        assert_eq!(of(&[TRANSFER], data), None);
    }
    // One indexed address and the rest as data is no form of a transfer.
    assert_eq!(of(&[TRANSFER, topic(1)], &early[32..]), None);
}

#[test]
fn erc1155_single() {
    let topics = [TRANSFER_SINGLE, topic(9), topic(1), topic(2)];
    let data = [number(3), number(4)].concat();
    let Some(TokenEvent::Multi { from, to, items }) = of(&topics, &data) else {
        panic!("a transfer was expected");
    };
    assert_eq!((from, to), (account(1), account(2)));
    assert_eq!(items.iter().collect::<Vec<_>>(), [(U256::from(3), U256::from(4))]);
    for data in [&data[..63], &data[..32], &[data.as_slice(), &[0]].concat()] {
        assert_eq!(of(&topics, data), None);
    }
    assert_eq!(of(&topics[..3], &data), None);
}

fn batch(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|&word| number(word)).collect()
}

#[test]
fn erc1155_batch_and_its_hostile_offsets() {
    let topics = [TRANSFER_BATCH, topic(9), topic(1), topic(2)];
    let items = |words: &[u64]| match of(&topics, &batch(words)) {
        Some(TokenEvent::Multi { items, .. }) => {
            let pairs: Vec<(u64, u64)> = items.iter().map(|(id, value)| (id.to(), value.to())).collect();
            assert_eq!(items.len(), pairs.len());
            assert_eq!(
                items.get(0).map(|(id, value)| (id.to(), value.to())),
                pairs.first().copied()
            );
            assert_eq!(items.get(items.len()), None);
            Some(pairs)
        }
        None => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        items(&[64, 160, 2, 7, 8, 2, 10, 11]),
        Some(vec![(7, 10), (8, 11)])
    );
    // Arrays may stand in any order, and may be the same one.
    assert_eq!(items(&[128, 64, 1, 5, 1, 6]), Some(vec![(6, 5)]));
    assert_eq!(items(&[64, 64, 1, 5]), Some(vec![(5, 5)]));
    assert_eq!(items(&[64, 96, 0, 0]), Some(vec![]));
    for hostile in [
        &[64, 160, 2, 7, 8, 1, 10][..],
        &[64, 160, 2, 7, 8, 2, 10],
        &[64, 160, 2, 7, 8],
        &[64, 96, u64::MAX, 1],
        &[u64::MAX, 64, 1, 1],
        &[64, 1 << 40, 1, 1],
        &[64],
        &[],
    ] {
        assert_eq!(items(hostile), None, "{hostile:?}");
    }
}

#[test]
fn wrapping() {
    let data = number(6);
    let (account, value) = (account(1), U256::from(6));
    let deposit = TokenEvent::Deposit { account, value };
    assert_eq!(of(&[DEPOSIT, topic(1)], &data), Some(deposit));
    assert_eq!(deposit.kind(), TokenKind::Unknown);
    assert_eq!(
        of(&[WITHDRAWAL, topic(1)], &data),
        Some(TokenEvent::Withdrawal { account, value })
    );
    assert_eq!(of(&[DEPOSIT], &[topic(1).0, data].concat()), None);
    assert_eq!(of(&[DEPOSIT, topic(1), topic(2)], &data), None);
    assert_eq!(of(&[WITHDRAWAL, topic(1)], &data[..31]), None);
}

#[test]
fn words_that_are_no_addresses() {
    let mut dirty = topic(1);
    dirty[11] = 1;
    let data = number(1);
    assert_eq!(of(&[TRANSFER, dirty, topic(2)], &data), None);
    assert_eq!(of(&[TRANSFER, topic(2), dirty], &data), None);
    assert_eq!(of(&[DEPOSIT, dirty], &data), None);
    assert_eq!(of(&[TRANSFER, topic(1), dirty, topic(3)], &[]), None);
}

#[test]
fn native_coin_and_other_logs_are_no_tokens() {
    let topics = [TRANSFER, topic(1), topic(2)];
    assert_eq!(TokenEvent::of(&NATIVE_LOGS, &topics, &number(1)), None);
    assert_eq!(of(&[], &number(1)), None);
    assert_eq!(of(&[B256::ZERO, topic(1), topic(2)], &number(1)), None);
}

proptest! {
    #[test]
    fn no_log_panics(
        signature in 0usize..5,
        topics in proptest::collection::vec(any::<[u8; 32]>(), 0..4),
        small in proptest::collection::vec(0u8..200, 0..12),
        tail in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let signature = [TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH, DEPOSIT, WITHDRAWAL][signature];
        let clean = topics.iter().map(|topic| {
            let mut topic = *topic;
            topic[..12].fill(0);
            B256::from(topic)
        });
        let topics: Vec<B256> = std::iter::once(signature).chain(clean).collect();
        let mut data: Vec<u8> = small.iter().flat_map(|&word| number(u64::from(word) * 8)).collect();
        data.extend(tail);
        if let Some(TokenEvent::Multi { items, .. }) = of(&topics, &data) {
            prop_assert!(items.len() * 32 <= data.len());
            prop_assert_eq!(items.iter().count(), items.len());
        }
    }
}
