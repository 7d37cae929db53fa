//! Work beside the task that asks for it, which keeps what its lines in the log are of (the chain). A leaf.

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
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

/// Runs a task on a runtime, the caller's or another one, and gives what came of it; `None` where it panicked, or the
/// runtime ended. Dropping the future ends the task.
pub fn on<F>(runtime: &Handle, task: F) -> impl Future<Output = Option<F::Output>> + Send + use<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut alone = JoinSet::new();
    alone.spawn_on(task.in_current_span(), runtime);
    async move { alone.join_next().await?.ok() }
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

    #[test]
    fn a_task_runs_where_it_is_meant_to_and_ends_with_who_waits_for_it() {
        let other = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("other")
            .build()
            .unwrap();
        let own = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let name = || std::thread::current().name().map(str::to_owned);
        let told = own.block_on(on(other.handle(), async move { name() }));
        assert_eq!(told.flatten().as_deref(), Some("other"));
        assert_eq!(
            own.block_on(on(other.handle(), async { panic!("meant") })),
            None::<()>
        );
        let (kept, dropped) = std::sync::mpsc::channel::<()>();
        let task = on(other.handle(), async move {
            std::future::pending::<()>().await;
            drop(kept);
        });
        drop(task);
        // The other end goes with the task.
        assert!(dropped.recv_timeout(std::time::Duration::from_secs(30)).is_err());
        assert!(dropped.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected));
    }
}
