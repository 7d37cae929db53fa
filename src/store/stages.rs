//! Where a writer stands in its work, for whoever watches it there: tests that cut it off at a chosen point.
//!
//! A service watches nothing, and then a stage costs one look at an `Option`.

use std::sync::Arc;

/// What a writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Writes final blocks, without RocksDB's log.
    Final,
    /// Writes a block that is not final.
    Unfinal,
    /// Moves blocks that became final from the tail into the files of the arrays.
    Finalize,
    /// Takes a block off.
    Unwind,
    /// Flushes what was written without the log.
    Settle,
}

/// How far it is with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Nothing is done yet.
    Begun,
    /// The files of the arrays have grown ([`Step::Final`] and [`Step::Finalize`] only).
    Grown,
    /// They are forced to disk (the same).
    Synced,
    /// RocksDB has it.
    Written,
}

/// A point of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What is done.
    pub step: Step,
    /// How far.
    pub point: Point,
    /// The block that comes next when the step is done.
    pub next_block: u64,
    /// Records of each array that are forced to disk, in the order of [`super::FlatArray::ALL`].
    pub synced: [u64; super::flat::ARRAYS],
}

/// Is told of every stage, on the writer's thread, which goes on when it returns.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&Stage) + Send + Sync>);

impl Observer {
    /// Hands every stage to `tell`.
    pub fn new(tell: impl Fn(&Stage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, stage: &Stage) {
        (self.0)(stage);
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}
