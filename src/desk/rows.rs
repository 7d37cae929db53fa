//! The rows of each kind of list as text: the walk over a page is shared, how an item is written is the dialect's.

use std::sync::Arc;

use crate::json::UuidSpace;
use crate::model::{InternalTransaction, ListedTransaction, ListedTransfer, MinedBlock};
use crate::query::{
    CallNames, InternalPage, MinedPage, Paged, QueryError, Reader, TransactionPage, TransferPage,
};

use super::frames::{ListFrame, Places, RowSource};

/// Writes a transaction; also given: the last indexed block, and the function that is called or nothing.
pub(crate) type WriteTransaction = fn(&mut Vec<u8>, &ListedTransaction<'_>, u64, &str);

/// The transactions of a page.
pub(crate) struct TransactionRows {
    page: TransactionPage,
    head: u64,
    /// Shared by all that write parts of the page.
    names: Arc<CallNames>,
    write: WriteTransaction,
}

impl TransactionRows {
    pub(crate) fn new(
        reader: &Reader,
        page: TransactionPage,
        write: WriteTransaction,
    ) -> Result<Self, QueryError> {
        Ok(Self {
            page,
            head: reader.head().number,
            names: Arc::new(CallNames::new(reader)?),
            write,
        })
    }
}

impl RowSource for TransactionRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            head: self.head,
            names: Arc::clone(&self.names),
            write: self.write,
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        let (head, names, write) = (self.head, &self.names, self.write);
        let mut failed = None;
        let more = self
            .page
            .visit(&mut |transaction| match names.of_call(transaction) {
                Ok(name) => frame.item(|out| write(out, transaction, head, &name)),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            })?;
        failed.map_or(Ok(more), Err)
    }
}

/// Writes an internal transaction; the text is room for its path, reused from item to item.
pub(crate) type WriteInternal = fn(&mut Vec<u8>, &UuidSpace, &mut String, &InternalTransaction<'_>);

/// The internal transactions of a page.
pub(crate) struct InternalRows {
    page: InternalPage,
    ids: UuidSpace,
    trace_id: String,
    write: WriteInternal,
}

impl InternalRows {
    pub(crate) fn new(reader: &Reader, page: InternalPage, write: WriteInternal) -> Self {
        Self {
            page,
            ids: UuidSpace::new(reader.chain_id()),
            trace_id: String::new(),
            write,
        }
    }
}

impl RowSource for InternalRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            ids: self.ids.clone(),
            trace_id: String::new(),
            write: self.write,
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        let (ids, trace_id, write) = (&self.ids, &mut self.trace_id, self.write);
        self.page
            .visit(&mut |internal| frame.item(|out| write(out, ids, trace_id, internal)))
    }
}

/// Writes a block that an account mined.
pub(crate) type WriteMined = fn(&mut Vec<u8>, &MinedBlock);

/// The mined blocks of a page.
pub(crate) struct MinedRows {
    pub(crate) page: MinedPage,
    pub(crate) write: WriteMined,
}

impl RowSource for MinedRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            write: self.write,
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        let write = self.write;
        self.page.visit(&mut |mined| frame.item(|out| write(out, mined)))
    }
}

/// Writes a transfer; also given: the last indexed block.
pub(crate) type WriteTransfer = fn(&mut Vec<u8>, &UuidSpace, &ListedTransfer<'_>, u64);

/// The transfers of a page.
pub(crate) struct TransferRows {
    page: TransferPage,
    ids: UuidSpace,
    head: u64,
    write: WriteTransfer,
}

impl TransferRows {
    pub(crate) fn new(reader: &Reader, page: TransferPage, write: WriteTransfer) -> Self {
        Self {
            page,
            ids: UuidSpace::new(reader.chain_id()),
            head: reader.head().number,
            write,
        }
    }
}

impl RowSource for TransferRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            ids: self.ids.clone(),
            head: self.head,
            write: self.write,
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        let (ids, head, write) = (&self.ids, self.head, self.write);
        self.page
            .visit(&mut |row| frame.item(|out| write(out, ids, row, head)))
    }
}
