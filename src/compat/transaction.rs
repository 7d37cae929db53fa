//! The module `transaction`.

use serde::Serialize;

use crate::desk::answer::Plan;
use crate::desk::caching::Reach;
use crate::desk::transactions::{failure, succeeded};
use crate::http::{ErrorStatus, HttpError};

use super::ask::Ask;
use super::envelope::ok;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    is_error: &'static str,
    err_description: String,
}

const fn flag(flag: bool) -> &'static str {
    if flag { "1" } else { "0" }
}

/// `getstatus`.
pub(super) fn status(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let hash = ask.hash()?;
    Ok(Plan::point(move |snapshot| {
        let (failure, reach) = failure(snapshot, &hash)?;
        let result = Status {
            is_error: flag(failure.is_some()),
            err_description: failure.unwrap_or_default(),
        };
        ok(&result, reach)
    }))
}

#[derive(Serialize)]
struct ReceiptStatus {
    status: &'static str,
}

/// `gettxreceiptstatus`: an empty text for a transaction that is not there (yet), for which clients ask again.
pub(super) fn receipt_status(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let hash = ask.hash()?;
    Ok(Plan::quick(move |snapshot| match succeeded(snapshot, &hash) {
        Ok((succeeded, reach)) => ok(
            &ReceiptStatus {
                status: flag(succeeded),
            },
            reach,
        ),
        Err(error) if error.status() == ErrorStatus::NotFound => {
            ok(&ReceiptStatus { status: "" }, Reach::Head)
        }
        Err(error) => Err(error),
    }))
}
