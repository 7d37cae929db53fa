//! What is said of a database that could not be used.

use std::time::Duration;

/// A database that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Not reachable, or a statement failed.
    #[error("PostgreSQL at {shown}: {reason}")]
    Failed {
        /// The URL without path, user and query.
        shown: String,
        /// The server's words.
        reason: String,
    },
    /// The URL is none. It is not repeated: it may hold a password.
    #[error("against-postgres: not a URL such as postgres://user@127.0.0.1:5432/database")]
    Url,
    /// The schema is somebody else's.
    #[error("PostgreSQL has a schema `{0}` that quarry did not make: drop or rename it")]
    Foreign(String),
    /// Another run uses the schema.
    #[error(
        "PostgreSQL: another run of quarry bench uses the schema `{0}`: wait until it has ended, or name another database"
    )]
    Taken(String),
    /// It took too long.
    #[error("PostgreSQL at {shown}: no answer within {seconds} s")]
    Late {
        /// The URL without path, user and query.
        shown: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The logs could not be read from the store.
    #[error("cannot read the logs to load: {0}")]
    Source(String),
}

pub(super) async fn within<T>(
    time: Duration,
    shown: &str,
    work: impl Future<Output = Result<T, PostgresError>>,
) -> Result<T, PostgresError> {
    let late = || PostgresError::Late {
        shown: shown.to_owned(),
        seconds: time.as_secs(),
    };
    tokio::time::timeout(time, work)
        .await
        .unwrap_or_else(|_| Err(late()))
}

pub(super) fn failed(shown: &str, error: &tokio_postgres::Error) -> PostgresError {
    // The error's own text ends where its cause begins.
    let cause = std::error::Error::source(error).map(ToString::to_string);
    PostgresError::Failed {
        shown: shown.to_owned(),
        reason: cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")),
    }
}
