//! A contract of two standards has one `balanceOf`: what it tells is of ERC-20, ids are counted by events.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarry::model::token::TRANSFER;
use quarry::model::{Address, B256, Log, TokenKind, TokenMetadata, Topics, U256};
use quarry::query::{Exactness, KeyPart, Reader, TokenFacts, Verdict, ZeroAddress};
use quarry::store::StoreError;

use crate::{chain, follow, open, scratch};

/// What contracts said last; none of them is exact.
#[derive(Debug)]
struct Said(BTreeMap<(Address, Address), u64>);

impl TokenFacts for Said {
    fn metadata(&self, _: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        Ok(None)
    }

    fn verdict(&self, _: &Address, _: bool) -> Result<Verdict, StoreError> {
        Ok(Verdict {
            exactness: Exactness::Inexact,
            zero: ZeroAddress::Burns,
        })
    }

    fn balance(&self, token: &Address, holder: &Address) -> Result<Option<U256>, StoreError> {
        Ok(self.0.get(&(*token, *holder)).map(|&balance| U256::from(balance)))
    }

    fn held_by(&self, holder: &Address, _: usize) -> Result<Vec<Address>, StoreError> {
        Ok(self
            .0
            .iter()
            .filter(|((_, who), balance)| who == holder && **balance > 0)
            .map(|((token, _), _)| *token)
            .collect())
    }
}

#[test]
fn what_a_contract_tells_is_of_one_standard() {
    let [coins_first, ids_first, ids_alone] = [0xab, 0xac, 0xad].map(Address::repeat_byte);
    let [who, silent, collector] = [0x21, 0x22, 0x23].map(Address::repeat_byte);
    let coins = |token: Address, to: Address, amount: u64| Log {
        address: token,
        topics: Topics::new(&[TRANSFER, B256::ZERO, to.into_word()]).unwrap(),
        data: U256::from(amount).to_be_bytes_vec().into(),
    };
    let id = |token: Address, to: Address, id: u64| Log {
        address: token,
        topics: Topics::new(&[TRANSFER, B256::ZERO, to.into_word(), B256::from(U256::from(id))]).unwrap(),
        data: Default::default(),
    };
    let mut bundles = chain(5, 30);
    let receipts = bundles[..20].iter_mut().flat_map(|bundle| &mut bundle.receipts);
    let logs = [
        coins(coins_first, who, 500),
        id(coins_first, who, 7),
        id(coins_first, who, 9),
        id(ids_first, who, 3),
        coins(ids_first, who, 100),
        id(ids_alone, who, 1),
        id(ids_alone, who, 2),
        id(coins_first, collector, 11),
    ];
    for (receipt, log) in receipts.zip(logs) {
        receipt.logs.push(log);
    }
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    follow(&mut writer, &bundles);
    let held = |said: &[(Address, Address, u64)], who: Address, kind: TokenKind| {
        let said = said
            .iter()
            .map(|&(token, who, balance)| ((token, who), balance))
            .collect();
        let reader = Reader::new(store.view()).with_token_facts(Arc::new(Said(said)));
        let page = reader.holdings(&who, kind, &KeyPart::skipping(0, 10)).unwrap();
        let held = page
            .tokens
            .iter()
            .map(|held| (held.token, held.balance.to::<u64>()));
        held.collect::<Vec<_>>()
    };
    let ids = |said: &[(Address, Address, u64)], token: Address| {
        let said = said
            .iter()
            .map(|&(token, who, balance)| ((token, who), balance))
            .collect();
        let reader = Reader::new(store.view()).with_token_facts(Arc::new(Said(said)));
        let token = reader.token(&token).unwrap().unwrap();
        let part = KeyPart::skipping(0, 10);
        let page = reader.nft_ids(&token, &who, &part, None).unwrap();
        assert_eq!(page.total, page.ids.len() as u64);
        page.ids.iter().map(U256::to::<u64>).collect::<Vec<_>>()
    };
    // Nothing was told: by events.
    let (erc20, erc721) = (TokenKind::Erc20, TokenKind::Erc721);
    assert_eq!(held(&[], who, erc20), [(coins_first, 500), (ids_first, 100)]);
    let by_events = [(coins_first, 2), (ids_first, 1), (ids_alone, 2)];
    assert_eq!(held(&[], who, erc721), by_events);
    // Told: coins of both, and the number of ids of what has no coins.
    let said = [
        (coins_first, who, 777),
        (ids_first, who, 888),
        (ids_alone, who, 5),
        (ids_first, silent, 30),
    ];
    assert_eq!(held(&said, who, erc20), [(coins_first, 777), (ids_first, 888)]);
    assert_eq!(
        held(&said, who, erc721),
        [(coins_first, 2), (ids_first, 1), (ids_alone, 5)]
    );
    // Whom no event named has coins, and no ids.
    assert_eq!(held(&said, silent, erc20), [(ids_first, 30)]);
    assert_eq!(held(&said, silent, erc721), []);
    // Who has no coins may have ids; who has none of a contract of ids alone has none.
    let none = [coins_first, ids_first, ids_alone].map(|token| (token, who, 0));
    assert_eq!(held(&none, who, erc20), []);
    assert_eq!(held(&none, who, erc721), [(coins_first, 2), (ids_first, 1)]);
    assert_eq!(ids(&none, coins_first), [7, 9]);
    assert_eq!(ids(&none, ids_first), [3]);
    assert_eq!(ids(&none, ids_alone), [0; 0]);
    assert_eq!(ids(&said, ids_alone), [1, 2]);
    // Whoever took part by either standard is asked for.
    let reader = Reader::new(store.view());
    let token = reader.token(&coins_first).unwrap().unwrap();
    assert_eq!(
        reader.ledger_holders_ever(&token, None, 10).unwrap(),
        [who, collector]
    );
    assert_eq!(
        reader.ledger_holders_ever(&token, Some(&who), 1).unwrap(),
        [collector]
    );
}
