//! Threads that own sockets: each has a loop of its own, and a connection stays with the thread that it was dealt to.
//!
//! On a runtime of many threads a request wakes whichever of them waits for sockets, is handed to another, and is looked
//! for by a third. Here it is answered where it was read (`docs/decisions/0052-socket-threads.md`).

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// One thread, until it is dropped.
#[derive(Debug)]
struct Thread {
    handle: Handle,
    /// Connections that it has.
    open: Arc<AtomicUsize>,
    ends: oneshot::Sender<()>,
    /// Comes to its end with the thread.
    gone: oneshot::Receiver<()>,
}

impl Thread {
    fn start(number: usize) -> io::Result<Self> {
        let (ends, ended) = oneshot::channel::<()>();
        let (is_here, gone) = oneshot::channel::<()>();
        let (tells, told) = std::sync::mpsc::channel();
        // Where no thread can be had, no runtime must be dropped either: that panics among async work.
        std::thread::Builder::new()
            .name(format!("sockets-{number}"))
            .spawn(move || {
                match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => {
                        let _ = tells.send(Ok(runtime.handle().clone()));
                        drop(runtime.block_on(ended));
                    }
                    Err(error) => drop(tells.send(Err(error))),
                }
                drop(is_here);
            })?;
        let handle = told.recv().map_err(io::Error::other)??;
        Ok(Self {
            handle,
            open: Arc::default(),
            ends,
            gone,
        })
    }
}

/// A connection of a thread, until it is dropped.
struct Dealt(Arc<AtomicUsize>);

impl Drop for Dealt {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The threads that connections are dealt to.
#[derive(Debug, Default)]
pub(super) struct Sockets(Vec<Thread>);

impl Sockets {
    /// Starts so many threads. Of none, connections stay on the runtime that accepts them.
    pub(super) fn start(threads: usize) -> io::Result<Self> {
        (0..threads)
            .map(Thread::start)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Ends the threads, and waits so long for them to be gone: what requests of HTTP/2 left behind is dropped on them, and with it what
    /// they hold of stores.
    pub(super) async fn end(self, patience: Duration) {
        let ended: Vec<_> = self
            .0
            .into_iter()
            .map(|Thread { ends, gone, .. }| {
                drop(ends);
                gone
            })
            .collect();
        let all = async {
            for gone in ended {
                let _ = gone.await;
            }
        };
        drop(tokio::time::timeout(patience, all).await);
    }

    /// Serves a connection on the thread that has fewest of them.
    pub(super) fn deal<F>(
        &self,
        connections: &mut JoinSet<()>,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let fewest = |thread: &&Thread| thread.open.load(Ordering::Relaxed);
        let Some(thread) = self.0.iter().min_by_key(fewest) else {
            connections.spawn(async move { serve(stream).await });
            return;
        };
        // Off the loop that accepted it; a socket belongs to one of them.
        let stream = stream.into_std();
        thread.open.fetch_add(1, Ordering::Relaxed);
        let dealt = Dealt(Arc::clone(&thread.open));
        let served = async move {
            let _dealt = dealt;
            match stream.and_then(TcpStream::from_std) {
                Ok(stream) => serve(stream).await,
                Err(error) => tracing::warn!(target: "quarry::http", %error, "connection lost"),
            }
        };
        connections.spawn_on(served, &thread.handle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::net::TcpListener;
    use tokio::sync::watch;

    use super::*;

    const THREADS: usize = 3;
    const CONNECTIONS: usize = 7;

    /// Names of the threads that serve connections, each until `ended` is told, then how many had to be served.
    async fn dealt(
        sockets: &Sockets,
        connections: &mut JoinSet<()>,
        ended: &watch::Receiver<()>,
    ) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, told) = mpsc::channel();
        for _ in 0..CONNECTIONS {
            let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            let (stream, _) = accepted.unwrap();
            let (tell, mut ended) = (tell.clone(), ended.clone());
            let serve = async move |stream: TcpStream| {
                // The socket works where it was dealt to.
                stream.writable().await.unwrap();
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                tell.send(name).unwrap();
                drop(ended.changed().await);
            };
            sockets.deal(connections, stream, serve);
            drop(client);
        }
        tokio::task::yield_now().await;
        let wait = move || {
            (0..CONNECTIONS)
                .map(|_| told.recv_timeout(Duration::from_secs(30)).unwrap())
                .collect()
        };
        tokio::task::spawn_blocking(wait).await.unwrap()
    }

    #[tokio::test]
    async fn connections_are_dealt_to_who_has_fewest() {
        let sockets = Sockets::start(THREADS).unwrap();
        let mut connections = JoinSet::new();
        for _ in 0..2 {
            let (end, ended) = watch::channel(());
            let mut names = dealt(&sockets, &mut connections, &ended).await;
            names.sort();
            let counts: Vec<usize> = names.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
            assert_eq!(counts, [3, 2, 2], "{names:?}");
            assert!(names.iter().all(|name| name.starts_with("sockets-")), "{names:?}");
            drop(end);
            while connections.join_next().await.is_some() {}
            let open = sockets.0.iter().map(|thread| thread.open.load(Ordering::Relaxed));
            assert_eq!(open.sum::<usize>(), 0);
        }
    }

    #[tokio::test]
    async fn without_threads_they_stay_where_they_were_accepted() {
        let (end, ended) = watch::channel(());
        let mut connections = JoinSet::new();
        let names = dealt(&Sockets::default(), &mut connections, &ended).await;
        let here = std::thread::current().name().unwrap_or_default().to_owned();
        assert_eq!(names, vec![here; CONNECTIONS]);
        drop(end);
    }

    #[tokio::test]
    async fn threads_end_with_what_holds_them() {
        struct Ending(mpsc::Sender<String>);
        impl Drop for Ending {
            fn drop(&mut self) {
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                drop(self.0.send(name));
            }
        }
        let sockets = Sockets::start(1).unwrap();
        let (tell, told) = mpsc::channel();
        let ending = Ending(tell);
        sockets.0[0].handle.spawn(async move {
            let _ending = ending;
            std::future::pending::<()>().await;
        });
        drop(sockets);
        let name = tokio::task::spawn_blocking(move || told.recv_timeout(Duration::from_secs(30)));
        assert_eq!(name.await.unwrap().unwrap(), "sockets-0");
    }
}
