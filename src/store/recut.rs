//! Units of a block cut anew, for migrations that make its rows shorter.

use std::ops::Range;

use rocksdb::{ColumnFamily, WriteBatch};

use super::{StoreError, Units};
use crate::codec::chunk::UnitBuilder;
use crate::codec::keys;

/// Writes the rows of a block in another form, in units as a store that is filled now has them: `rewrite` appends a row's new bytes, given its ordinal
/// and its old ones. Units that go are deleted before those that come are put, for some have the same key.
pub(super) fn recut(
    stored: &mut Units<'_>,
    (number, rows): (u64, Range<u64>),
    unit_bytes_max: usize,
    (write, table): (&mut WriteBatch, &ColumnFamily),
    mut rewrite: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut units = UnitBuilder::new(number, unit_bytes_max);
    let mut row = Vec::with_capacity(512);
    let (mut next, mut made) = (rows.start, Vec::new());
    let mut put = |unit: Option<(u64, &[u8])>| {
        if let Some((count, value)) = unit {
            next += count;
            made.push((keys::number(next - 1), value.to_vec()));
        }
    };
    for ordinal in rows {
        // A unit is named by its last row.
        if stored.unit(ordinal)?.last() == ordinal {
            write.delete_cf(table, keys::number(ordinal));
        }
        row.clear();
        rewrite(ordinal, stored.row(ordinal)?.bytes(), &mut row)?;
        put(units.push(&row));
    }
    put(units.finish());
    for (key, value) in made {
        write.put_cf(table, key, value);
    }
    Ok(())
}
