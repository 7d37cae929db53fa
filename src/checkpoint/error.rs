//! Why a checkpoint is not made, not believed or not restored; one sentence each.

use std::path::PathBuf;

use crate::store::StoreError;

/// A failure of a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The store that is copied, or the copy.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file operation failed.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The stream cannot be written.
    #[error("cannot write the checkpoint: {0}")]
    Write(std::io::Error),
    /// The end was asked for.
    #[error("interrupted; nothing of it is left that could be taken for a checkpoint or a store")]
    Stopped,
    /// The place for the checkpoint is taken.
    #[error("`{}` exists already: name a directory that does not", path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// The place for the store is taken.
    #[error(
        "there is something in `{}` already, and a restore overwrites nothing: pass another --data-dir, or move it away first",
        path.display()
    )]
    Occupied {
        /// The place.
        path: PathBuf,
    },
    /// What is at the place for the store stays there.
    #[error(
        "`{}` is {what}, whose place a restored store cannot take: {way_out}",
        path.display()
    )]
    Fixed {
        /// The place.
        path: PathBuf,
        /// What is there.
        what: &'static str,
        /// What to do.
        way_out: &'static str,
    },
    /// What is there is no checkpoint, or not the whole of one.
    #[error("`{from}` is no whole checkpoint: {reason}")]
    NotWhole {
        /// What was read.
        from: String,
        /// What is missing or does not belong.
        reason: String,
    },
    /// A file is not what the manifest says.
    #[error("the checkpoint `{from}` is damaged: {reason}; take another copy of it")]
    Damaged {
        /// What was read.
        from: String,
        /// Which file, and how.
        reason: String,
    },
    /// It is of another version.
    #[error("the checkpoint `{from}` has {what} {found}, this quarry reads {wanted}: {way_out}")]
    Version {
        /// What was read.
        from: String,
        /// `format` or `layout version`.
        what: &'static str,
        /// In the checkpoint.
        found: u32,
        /// Ours.
        wanted: u32,
        /// What to do.
        way_out: &'static str,
    },
    /// A name that no checkpoint has.
    #[error(
        "the checkpoint `{from}` names `{name}`, which is {reason}: it was not made by quarry and nothing of it is used"
    )]
    Name {
        /// What was read.
        from: String,
        /// The name, escaped.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl CheckpointError {
    /// A file operation that failed.
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    pub(super) fn not_whole(from: &str, reason: impl Into<String>) -> Self {
        Self::NotWhole {
            from: from.to_owned(),
            reason: reason.into(),
        }
    }

    pub(super) fn damaged(from: &str, reason: impl Into<String>) -> Self {
        Self::Damaged {
            from: from.to_owned(),
            reason: reason.into(),
        }
    }
}
