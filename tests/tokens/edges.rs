//! Amounts at the edge of what 256 bits hold: what a block does is told by what is there after it.

use quarry::model::token::{TRANSFER, TRANSFER_SINGLE};
use quarry::model::{Log, Topics};
use quarry::query::KeyPart;

use super::*;

const COIN: Address = Address::repeat_byte(0xab);
const UNITS: Address = Address::repeat_byte(0xac);
const RICH: Address = Address::repeat_byte(0x21);
const OTHER: Address = Address::repeat_byte(0x22);

fn coins(from: Address, to: Address, amount: U256) -> Log {
    Log {
        address: COIN,
        topics: Topics::new(&[TRANSFER, from.into_word(), to.into_word()]).unwrap(),
        data: amount.to_be_bytes_vec().into(),
    }
}

/// Units of the id 7.
fn units(from: Address, to: Address, amount: U256) -> Log {
    Log {
        address: UNITS,
        topics: Topics::new(&[TRANSFER_SINGLE, B256::ZERO, from.into_word(), to.into_word()]).unwrap(),
        data: [U256::from(7), amount]
            .map(|word| word.to_be_bytes::<32>())
            .concat()
            .into(),
    }
}

/// What moves, block by block.
fn moves() -> Vec<Vec<(Address, Address, U256)>> {
    let (five, all) = (U256::from(5), U256::MAX);
    vec![
        // All there can be, and some of it to its owner.
        vec![(Address::ZERO, RICH, all), (RICH, RICH, five)],
        vec![(RICH, RICH, five)],
        // More in all than fits, both ways, and back again; the last of it before there is room.
        vec![
            (RICH, RICH, all),
            (RICH, OTHER, five),
            (OTHER, RICH, five),
            (OTHER, RICH, five),
            (RICH, OTHER, five),
        ],
        vec![(RICH, OTHER, five), (OTHER, OTHER, all)],
    ]
}

#[test]
fn what_comes_in_and_goes_out_in_one_block_is_not_lost() {
    let mut bundles = chain(5, 30);
    for bundle in &mut bundles {
        bundle
            .receipts
            .iter_mut()
            .for_each(|receipt| receipt.logs.clear());
    }
    let with_receipts = bundles.iter_mut().filter(|bundle| !bundle.receipts.is_empty());
    for (bundle, moves) in with_receipts.zip(moves()) {
        for (from, to, amount) in moves {
            bundle.receipts[0].logs.push(coins(from, to, amount));
            bundle.receipts[0].logs.push(units(from, to, amount));
        }
    }
    let mut found = Vec::new();
    for blocks in [1, 3, 30] {
        let directory = scratch::directory();
        let store = open(directory.path());
        backfill(&mut store.writer().unwrap(), &bundles, blocks);
        let reader = Reader::new(store.view());
        for address in [COIN, UNITS] {
            let token = reader.token(&address).unwrap().unwrap();
            assert!(!token.is_flagged(), "{address}");
            assert_eq!(token.supply(), U256::MAX);
            let held = [RICH, OTHER].map(|who| reader.token_balance(&token, &who).unwrap());
            assert_eq!(held, [U256::MAX - U256::from(5), U256::from(5)], "{address}");
        }
        for (who, held) in [(RICH, U256::MAX - U256::from(5)), (OTHER, U256::from(5))] {
            let part = KeyPart::skipping(0, 10);
            let page = reader.multi_holdings(&who, None, &part, None).unwrap();
            let ids: Vec<_> = page.ids.iter().map(|id| (id.id, id.balance)).collect();
            assert_eq!(ids, [(U256::from(7), held)]);
        }
        found.push(digests(&store));
    }
    assert!(found.iter().all(|digests| *digests == found[0]));
}
