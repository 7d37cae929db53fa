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
struct Said {
    balances: BTreeMap<(Address, Address), u64>,
    /// Which of them tell decimals.
    coins: Vec<Address>,
}

impl TokenFacts for Said {
    fn metadata(&self, token: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        Ok(Some(TokenMetadata {
            decimals: self.coins.contains(token).then_some(18),
            ..TokenMetadata::default()
        }))
    }

    fn verdict(&self, _: &Address, _: bool) -> Result<Verdict, StoreError> {
        Ok(Verdict {
            exactness: Exactness::Inexact,
            zero: ZeroAddress::Burns,
        })
    }

    fn balance(&self, token: &Address, holder: &Address) -> Result<Option<U256>, StoreError> {
        Ok(self
            .balances
            .get(&(*token, *holder))
            .map(|&balance| U256::from(balance)))
    }

    fn held_by(
        &self,
        holder: &Address,
        after: Option<&Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        Ok(self
            .balances
            .iter()
            .filter(|((_, who), balance)| who == holder && **balance > 0)
            .map(|((token, _), _)| *token)
            .filter(|token| after.is_none_or(|after| after < token))
            .take(limit)
            .collect())
    }
}

#[test]
fn what_a_contract_tells_is_of_one_standard() {
    let [coins_first, ids_first, ids_alone, stray] = [0xab, 0xac, 0xad, 0xae].map(Address::repeat_byte);
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
        id(stray, who, 4),
        // By its topics one of ERC-20, of a contract that has no decimals: the id was not indexed.
        coins(stray, who, 6),
    ];
    for (receipt, log) in receipts.zip(logs) {
        receipt.logs.push(log);
    }
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    follow(&mut writer, &bundles);
    let reader = |said: &[(Address, Address, u64)]| {
        let said = said.iter().map(|&(token, who, balance)| ((token, who), balance));
        let said = Said {
            balances: said.collect(),
            coins: vec![coins_first, ids_first],
        };
        Reader::new(store.view()).with_token_facts(Arc::new(said))
    };
    let held = |said: &[(Address, Address, u64)], who: Address, kind: TokenKind| {
        let reader = reader(said);
        let page = reader
            .holdings(&who, kind, &KeyPart::skipping(0, 10), None)
            .unwrap();
        let held = page
            .tokens
            .iter()
            .map(|held| (held.token, held.balance.to::<u64>()));
        held.collect::<Vec<_>>()
    };
    let ids = |said: &[(Address, Address, u64)], token: Address| {
        let reader = reader(said);
        let token = reader.token(&token).unwrap().unwrap();
        let part = KeyPart::skipping(0, 10);
        let page = reader.nft_ids(&token, &who, &part, None).unwrap();
        assert_eq!(page.total, page.ids.len() as u64);
        page.ids.iter().map(U256::to::<u64>).collect::<Vec<_>>()
    };
    // Nothing was told: by events.
    let (erc20, erc721) = (TokenKind::Erc20, TokenKind::Erc721);
    assert_eq!(
        held(&[], who, erc20),
        [(coins_first, 500), (ids_first, 100), (stray, 6)]
    );
    let by_events = [(coins_first, 2), (ids_first, 1), (ids_alone, 2), (stray, 1)];
    assert_eq!(held(&[], who, erc721), by_events);
    // Told: coins of both, and the number of ids of what has no coins.
    let said = [
        (coins_first, who, 777),
        (ids_first, who, 888),
        (ids_alone, who, 5),
        (stray, who, 2),
        (stray, silent, 3),
        (ids_first, silent, 30),
    ];
    assert_eq!(
        held(&said, who, erc20),
        [(coins_first, 777), (ids_first, 888), (stray, 6)]
    );
    assert_eq!(
        held(&said, who, erc721),
        [(coins_first, 2), (ids_first, 1), (ids_alone, 5), (stray, 2)]
    );
    // Whom no event named has coins, and no ids.
    assert_eq!(held(&said, silent, erc20), [(ids_first, 30)]);
    assert_eq!(held(&said, silent, erc721), [(stray, 3)]);
    // Who has no coins may have ids; who has none of a contract of ids alone has none.
    let none = [coins_first, ids_first, ids_alone, stray].map(|token| (token, who, 0));
    assert_eq!(held(&none, who, erc20), [(stray, 6)]);
    assert_eq!(held(&none, who, erc721), [(coins_first, 2), (ids_first, 1)]);
    assert_eq!(ids(&none, coins_first), [7, 9]);
    assert_eq!(ids(&none, ids_first), [3]);
    assert_eq!(ids(&none, ids_alone), [0; 0]);
    assert_eq!(ids(&said, ids_alone), [1, 2]);
    // Whoever took part by either standard is asked for.
    let reader = reader(&said);
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
