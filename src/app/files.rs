//! How many files the process may have open, and who may have how many of them. A store that finds none left can neither write
//! nor go on once there are some again, so clients must not be able to take its own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::AppError;

/// A store is not written with fewer: its tables, a flush of all of them, arrays and logs.
const WRITING_MIN: u64 = 256;
/// The tables of all stores may take one in so many files.
const TABLES_SHARE: u64 = 4;
/// Connections leave half of the files to the stores, or so many: two of them with all their tables open.
const LEFT_MAX: u64 = 9_000;
/// Where few may be open: those of a process that does nothing, and connections that are told that there are too many.
const OTHERS: u64 = 164;

/// Raises the limit as far as the system lets the process: shells and supervisors give few, and allow more.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "the limit on open files stays");
        }
    }
}

/// The limit; `None` where there is none.
fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Refuses to write a store where so few files may be open that it would end in the middle of something.
pub(super) fn check_writing() -> Result<(), AppError> {
    enough(limit())
}

fn enough(limit: Option<u64>) -> Result<(), AppError> {
    match limit {
        Some(limit) if limit < WRITING_MIN => Err(AppError::Usage(format!(
            "only {limit} files may be open at once, and a store that is written needs {WRITING_MIN}: raise the limit (ulimit -n, \
             LimitNOFILE=, --ulimit nofile=)"
        ))),
        _ => Ok(()),
    }
}

/// Tables that the store of one of so many chains may keep open, of those that were wished for.
pub(super) fn of_tables(wished: i32, chains: usize) -> i32 {
    let share = limit().map(|limit| limit / TABLES_SHARE / chains.max(1) as u64);
    share.map_or(wished, |share| {
        i32::try_from(share).unwrap_or(i32::MAX).min(wished)
    })
}

/// Connections that may be open, of those that were wished for.
pub(super) fn of_connections(wished: usize) -> usize {
    let granted = left(limit(), wished);
    if granted < wished {
        tracing::warn!(
            wished,
            granted,
            "fewer connections are taken than --max-connections says, for few files may be open (ulimit -n)"
        );
    }
    granted
}

fn left(limit: Option<u64>, wished: usize) -> usize {
    let left = limit.map(|limit| {
        let beside_tables = (limit - limit / TABLES_SHARE).saturating_sub(OTHERS);
        (limit - LEFT_MAX.min(limit / 2)).min(beside_tables.max(limit / 16))
    });
    left.map_or(wished, |left| usize::try_from(left).unwrap_or(wished).min(wished))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_share() {
        assert_eq!(left(None, 4096), 4096);
        assert_eq!(left(Some(1 << 20), 4096), 4096);
        assert_eq!(left(Some(20_000), 12_000), 11_000);
        assert_eq!(left(Some(1024), 4096), 512);
        assert_eq!(left(Some(1024), 100), 100);
        // A quarter for tables, what is open anyhow, and those who are refused.
        assert_eq!(left(Some(512), 4096), 220);
        assert_eq!(left(Some(256), 4096), 28);
        assert_eq!(left(Some(64), 4096), 4);
        assert!(enough(None).is_ok() && enough(Some(256)).is_ok());
        let said = enough(Some(80)).unwrap_err().to_string();
        assert!(
            said.contains("only 80 files") && said.contains("ulimit -n"),
            "{said}"
        );
    }
}
