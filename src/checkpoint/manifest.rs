//! What a checkpoint says of itself: which chain, how far, and every file with its length and hash.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{CheckpointError, name::Name};
use crate::clock;
use crate::model::{B256, BlockId, ChainName};
use crate::store::View;

/// The version of checkpoints: of the manifest, of names and of streams.
pub const FORMAT: u32 = 1;

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Where it lies in the store's directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of it, hex.
    pub sha256: String,
}

/// A block, by number and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
}

/// What a checkpoint says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Manifest {
    /// Version of checkpoints.
    pub format: u32,
    /// Layout version of the store (docs/SCHEMA.md).
    pub layout: u32,
    /// The quarry that made it.
    pub quarry: String,
    /// Under which name the chain was served.
    pub chain: String,
    /// Chain id.
    pub chain_id: u64,
    /// Hash of block 0; zero where it was not told.
    pub genesis_hash: B256,
    /// The first block of the store.
    pub first_block: u64,
    /// The last block; none in an empty store.
    pub head: Option<Named>,
    /// The last final block; none where none is.
    pub finalized: Option<u64>,
    /// When it was taken, Unix seconds.
    pub taken: u64,
    /// Every file, by name.
    pub files: Vec<Part>,
}

/// The file: what is said, and the hash of that, so that a changed digit is seen too.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    checkpoint: Manifest,
    sha256: String,
}

/// Only this is read of a manifest whose version is not known yet.
#[derive(Deserialize)]
struct Versions {
    checkpoint: Version,
}

#[derive(Deserialize)]
struct Version {
    format: u32,
}

fn seal(manifest: &Manifest) -> Result<String, serde_json::Error> {
    let plain = serde_json::to_vec(manifest)?;
    Ok(const_hex::encode(Sha256::digest(plain)))
}

/// The sentence for a version that is not ours.
pub(super) fn other_version(from: &str, what: &'static str, found: u32, wanted: u32) -> CheckpointError {
    CheckpointError::Version {
        from: from.to_owned(),
        what,
        found,
        wanted,
        way_out: if found > wanted {
            "use the newer quarry that made it"
        } else {
            "use the quarry that made it, or fill a store from the node"
        },
    }
}

impl Manifest {
    /// Of a copy of a store, without its files.
    pub(super) fn of(view: &View, chain: ChainName) -> Self {
        let identity = view.identity();
        Self {
            format: FORMAT,
            layout: identity.schema,
            quarry: env!("CARGO_PKG_VERSION").to_owned(),
            chain: chain.to_string(),
            chain_id: identity.chain_id,
            genesis_hash: identity.genesis_hash.into(),
            first_block: identity.first_block,
            head: view.head().map(|BlockId { number, hash }| Named { number, hash }),
            finalized: view.finalized(),
            taken: clock::unix_seconds(clock::wall()) as u64,
            files: Vec::new(),
        }
    }

    /// As a file.
    pub(super) fn encode(&self) -> Result<Vec<u8>, CheckpointError> {
        let failed = |error| CheckpointError::Write(std::io::Error::other(error));
        let sealed = Sealed {
            sha256: seal(self).map_err(failed)?,
            checkpoint: self.clone(),
        };
        let mut text = serde_json::to_vec_pretty(&sealed).map_err(failed)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads a manifest; `from` is what errors call its checkpoint.
    pub(super) fn decode(from: &str, text: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |error: &dyn std::fmt::Display| {
            CheckpointError::damaged(from, format!("{} cannot be read ({error})", super::MANIFEST))
        };
        let versions: Versions = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
        let found = versions.checkpoint.format;
        if found != FORMAT {
            return Err(other_version(from, "format", found, FORMAT));
        }
        let Sealed { checkpoint, sha256 } = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
        if seal(&checkpoint).map_err(|error| damaged(&error))? != sha256 {
            return Err(damaged(&"it is not what was written"));
        }
        let mut names: Vec<Name> = Vec::with_capacity(checkpoint.files.len());
        for file in &checkpoint.files {
            names.push(Name::parse(from, &file.name)?);
        }
        if !names.is_sorted_by(|one, next| one < next) {
            return Err(damaged(&"its files are not in order"));
        }
        Ok(checkpoint)
    }

    /// The bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}
