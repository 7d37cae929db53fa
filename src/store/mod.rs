//! One RocksDB database for each chain: tables, flat arrays, snapshots, scans, postings and undo.
//!
//! There is one [`Writer`]; it adds whole blocks, each with its derived rows and the checkpoint in one
//! atomic write, and takes unfinal ones back to the same bytes as before. Readers hold a [`View`]: one
//! snapshot of all tables and arrays. This room knows keys and bytes through `codec`; it knows nothing
//! of nodes, of verification and of queries.

mod ahead;
mod batch;
mod beside;
mod bulk;
mod caches;
mod cold;
mod copy;
mod cursor;
mod days;
mod error;
mod filters;
mod flat;
mod heartbeat;
mod imported;
mod inspect;
mod kept_ordinals;
mod kept_rows;
mod known;
mod ledger;
mod lists;
mod live_files;
mod look_up;
mod map;
mod memory;
mod migrate;
mod observed;
mod open;
mod open_pieces;
mod options;
mod participants;
mod pen;
mod places;
mod posted;
mod presence;
mod recut;
mod render;
mod replica;
mod scan;
pub mod schema;
mod schema_doc;
mod second_standards;
mod secondary;
mod stages;
mod tail;
mod token_ledger;
mod top_calls;
mod torn;
mod transaction_rows;
mod view;
mod walked;
mod whole_log;
mod writer;

pub use ahead::{Touch, Wanted};
pub use batch::{Batch, status_byte};
pub use cold::{Evicted, evict};
pub use copy::{Copied, PARTS, copy_store, is_part_of_copy, open_copy};
pub use cursor::{Direction, PostingCursor};
pub use error::StoreError;
pub use flat::{BlockEarnings, BlockFacts, BlockFrames, FlatArray};
pub use heartbeat::{Heartbeat, is_written};
pub use imported::{ImportRow, ImportWriter, Imported, LOOK_EVERY};
pub use inspect::{Contents, Figures};
pub use known::KnownToken;
pub use lists::{Runs, Unit, UnitRow, Units};
pub use memory::{from_memory, give_up, is_from_memory};
pub use migrate::migrate;
pub use observed::{Observed, Refreshed, ToldBalance};
pub use open::{OpenOptions, Store};
pub use participants::Participants;
pub use replica::{Look, Replica};
pub use scan::{Item, Scan};
pub use schema::Table;
pub use schema_doc::render_schema;
pub use second_standards::OtherHoldings;
pub use stages::{Observer, Point, Stage, Step};
pub use token_ledger::BatchToken;
pub use view::{LastSent, View};
pub use walked::{Trace, Walked, Walks};
pub use whole_log::WholeLog;
pub use writer::Writer;
