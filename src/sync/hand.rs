//! The writer between two pieces of work.

use super::error::SyncError;
use crate::model::{B256, BlockId};
use crate::shutdown::Shutdown;
use crate::store::Writer;
use crate::tasks;

/// Holds the writer while nothing is written; work that lost it ends the sync.
#[derive(Debug)]
pub(super) struct Hand(Option<Writer>);

impl Hand {
    pub(super) const fn new(writer: Writer) -> Self {
        Self(Some(writer))
    }

    /// Runs work of the writer where it may block.
    pub(super) async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, SyncError> + Send + 'static,
    ) -> Result<T, SyncError> {
        let mut writer = self.take()?;
        let done = tasks::blocking(move || {
            let result = work(&mut writer);
            (writer, result)
        });
        let (writer, result) = done.await?;
        self.0 = Some(writer);
        result
    }

    /// Lends the writer to work that gives back what is left of it.
    pub(super) async fn lend<W>(&mut self, work: impl FnOnce(Writer) -> W) -> Result<(), SyncError>
    where
        W: Future<Output = (Option<Writer>, Result<(), SyncError>)>,
    {
        // Pinned: futures of whole chains would else be carried about.
        let (writer, result) = Box::pin(work(self.take()?)).await;
        self.0 = writer;
        result
    }

    /// Moves finality to a stored block if who gave it has it still, as often as that is asked.
    pub(super) async fn finalize_if_there<F>(
        &mut self,
        stored: BlockId,
        times: u32,
        theirs: impl Fn(u64) -> F,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError>
    where
        F: Future<Output = Result<B256, SyncError>>,
    {
        for _ in 0..times {
            let asked = shutdown.unless(theirs(stored.number)).await;
            if asked.transpose()? != Some(stored.hash) {
                return Ok(());
            }
        }
        self.with(move |writer| Ok(writer.finalize(stored.number)?)).await
    }

    fn take(&mut self) -> Result<Writer, SyncError> {
        self.0
            .take()
            .ok_or_else(|| SyncError::Worker("the writer is gone".to_owned()))
    }

    /// Ends the writer where it may block: what it holds is written. What was lost by that goes before what ended the sync, which the status
    /// has told; where the writer is lost itself, what ended the sync tells why.
    pub(super) async fn end(&mut self, ended: Result<(), SyncError>) -> Result<(), SyncError> {
        let mut writer = match self.take() {
            Ok(writer) => writer,
            Err(gone) => return ended.and(Err(gone)),
        };
        let written = tasks::blocking(move || writer.settle()).await?;
        written.map_err(SyncError::Unwritten).and(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{OpenOptions, Store};

    #[tokio::test]
    async fn a_worker_that_died_says_why() {
        let home = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(home.path());
        let store = Store::open_or_create(&options, 61, B256::repeat_byte(9), Some(0)).unwrap();
        let mut hand = Hand::new(store.writer().unwrap());
        let worked: Result<(), _> = hand.with(|_| panic!("no such row")).await;
        let said = hand.end(worked).await.unwrap_err().to_string();
        assert!(said.contains("no such row"), "{said}");
        // Where nothing ended it the writer should be there.
        let said = hand.end(Ok(())).await.unwrap_err().to_string();
        assert!(said.contains("the writer is gone"), "{said}");
    }
}
