//! What accounts have: balances and nonces, from the ledgers or, where those do not tell, from the node.

use super::args::Args;
use super::fault::Fault;
use super::methods::{Work, store, text};
use crate::desk::answer::{Answer, Plan, Question};
use crate::desk::balances;
use crate::desk::bounds::{AskedBlock, Bound};
use crate::desk::proxy::{self, Tag, bare};
use crate::http::HttpError;
use crate::json::writer;

/// `eth_getBalance`.
pub(super) fn balance(args: &mut Args) -> Result<Work, Fault> {
    let account = args.address("address")?;
    let block = args.block_or_latest("block")?;
    Ok(store(Plan::quick(move |snapshot| {
        let bound = match block.tag(snapshot)? {
            (Tag::Latest, _) => Bound::Latest,
            (_, number) => Bound::Number(number),
        };
        let asked = AskedBlock::new("block", bound);
        balances::of_account_at(snapshot, account, asked, |_, balance, _, _| {
            Ok(text(|out| writer::quantity_u256(out, &balance)))
        })
    })))
}

/// `eth_getTransactionCount`.
pub(super) fn transaction_count(args: &mut Args) -> Result<Work, Fault> {
    let account = args.address("address")?;
    let block = args.block_or_latest("block")?;
    Ok(store(Plan::quick(move |snapshot| {
        let (tag, _) = block.tag(snapshot)?;
        let plan = proxy::transaction_count(account, tag);
        (plan.work)(snapshot).map(bare)
    })))
}

/// `ots_hasCode`: code is state, which only the node has.
pub(super) fn has_code(args: &mut Args) -> Result<Work, Fault> {
    let account = args.address("address")?;
    let block = args.block_or_latest("block")?;
    Ok(store(Plan::point(move |snapshot| {
        let (_, number) = block.tag(snapshot)?;
        snapshot.extent().check_block(number)?;
        let nobody = HttpError::unavailable("Code is asked of the node, and there is none");
        let question = Question::after(snapshot, number, Err(nobody), move |node| {
            Box::pin(async move {
                let has = node.has_code(account, number).await?;
                Ok(Ok(text(|out| writer::boolean(out, has))))
            })
        })?;
        Ok(Answer::AskNode(question))
    })))
}
