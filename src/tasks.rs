//! Work beside the task that asks for it, which keeps what its lines in the log are of (the chain). A leaf.

use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Runs work that blocks where it may.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
}

/// Runs a task of its own.
pub fn beside<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tokio::spawn(task.in_current_span())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_beside_is_of_the_same_chain() {
        let subscriber = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
        let log = tracing::Dispatch::new(subscriber);
        let _guard = tracing::dispatcher::set_default(&log);
        let span = tracing::error_span!("chain");
        // Another thread has a log of its own in this test.
        let current = move || tracing::dispatcher::with_default(&log, tracing::Span::current);
        let (off, own) = async { (blocking(current), beside(async { tracing::Span::current() })) }
            .instrument(span.clone())
            .await;
        assert!(span.id().is_some());
        assert_eq!(off.await.unwrap().id(), span.id());
        assert_eq!(own.await.unwrap().id(), span.id());
    }
}
