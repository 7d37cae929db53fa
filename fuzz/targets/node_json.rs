//! What a node answers: a block, its receipts and its traces, a line each. Any text is read or refused; what is read is
//! verified with nothing worse than a mismatch, its self-destructs are told apart, and what an untrusted encoding hides from that is derived all the same
//! (`--trust-node`).

use std::cell::RefCell;
use std::sync::Arc;

use quarry::model::{Address, B256, Bundle, U256};
use quarry::node::wire;
use quarry::store::{Store, Writer};
use quarry::sync::derive::derive;
use quarry::sync::derive::native::NativeRules;
use quarry::sync::verify::{Rules, verify};
use quarry::sync::{ChainRules, tell_apart};

#[path = "scratch.rs"]
mod scratch;

/// The one that derives.
struct Deriving {
    writer: Writer,
    rules: ChainRules,
    _store: Arc<Store>,
    _directory: tempfile::TempDir,
}

impl Deriving {
    fn new() -> Self {
        let (directory, store) = scratch::store();
        Self {
            writer: store.writer().expect("the only writer"),
            rules: ChainRules::new(
                scratch::CHAIN_ID,
                B256::repeat_byte(1),
                None,
                scratch::FIRST_BLOCK,
                true,
            ),
            _store: store,
            _directory: directory,
        }
    }
}

thread_local! {
    static DERIVING: RefCell<Option<Deriving>> = const { RefCell::new(None) };
}

/// What an account holds before and after a block.
type Held = fn(&Address) -> (U256, U256);

/// Tells self-destructs apart by balances that explain them, or do not.
fn tell(bundle: &Bundle) {
    let rules = NativeRules::default();
    let said: [Held; 2] = [
        |_| (U256::MAX >> 1, U256::MAX >> 1),
        |account| (U256::MAX >> 1, U256::from_be_slice(account.as_slice())),
    ];
    for held in said {
        let mut told = bundle.clone();
        let mut asked = false;
        let is_explained = tell_apart(&mut told, &rules, |account| {
            asked = true;
            held(account)
        });
        assert!(asked || is_explained, "without a doubt nothing is missing");
        std::hint::black_box(told);
    }
}

fn judge(bundle: &Bundle) {
    tell(bundle);
    std::hint::black_box(verify(bundle, None, &Rules::default()).is_ok());
    let trusting = Rules::default().trusting_node(true);
    if bundle.block.number() != scratch::FIRST_BLOCK || verify(bundle, None, &trusting).is_err() {
        return;
    }
    DERIVING.with_borrow_mut(|kept| {
        let deriving = kept.get_or_insert_with(Deriving::new);
        let mut batch = deriving.writer.batch();
        std::hint::black_box(derive(bundle, &deriving.rules.nonces, &mut batch).is_ok());
    });
}

/// Reads `data`.
pub(crate) fn run(data: &[u8]) {
    let _ = (wire::abi::number(data), wire::abi::decimals(data));
    let _ = (wire::abi::address(data), wire::abi::text(data));
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.splitn(3, '\n');
    let first = lines.next().unwrap_or_default();
    let (second, third) = (lines.next().unwrap_or("[]"), lines.next().unwrap_or("[]"));
    let _ = (
        wire::quantity(first),
        wire::amount(first),
        wire::bytes(first),
        wire::text(first),
    );
    let _ = (wire::block_id(first), wire::uncle_header(first));
    let Ok(block) = wire::block(first) else { return };
    let _ = wire::receipt_texts(&[second, third], &block);
    let receipts = wire::receipts(second, &block);
    let told = [
        wire::told_traces(third, &block).ok(),
        wire::told_calls(third, &block).ok(),
    ];
    let Ok(receipts) = receipts else { return };
    for told in told {
        let (traces, untold) = told.map(|told| (told.traces, told.untold)).unzip();
        let mut bundle = Bundle {
            block: block.clone(),
            receipts: receipts.clone(),
            traces,
            openings: None,
        };
        if wire::settle(&mut bundle, &untold.unwrap_or_default()).is_err() {
            bundle.traces = None;
        }
        judge(&bundle);
    }
}
