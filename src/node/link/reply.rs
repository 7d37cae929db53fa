//! A JSON-RPC response in its parts.

use super::refusal::ErrorObject;
use crate::node::reader::{Fault, FromJson, Reader};
use serde_json::value::RawValue;

/// A JSON-RPC response; `jsonrpc` says nothing that matters. Absent fields are `None`, those that are `null` say so.
#[derive(Default)]
pub(super) struct Reply<'a> {
    id: Option<&'a str>,
    pub(super) result: Option<&'a str>,
    pub(super) error: Option<ErrorObject>,
}

impl<'a> FromJson<'a> for Reply<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut reply = Self::default();
        reader.object(|reader, key| {
            let place = match key {
                "id" => &mut reply.id,
                "result" => &mut reply.result,
                "error" if reply.error.is_some() => return Err(Fault::new("two fields `error`")),
                "error" if reader.null() => return Ok(()),
                "error" => {
                    reply.error = Some(ErrorObject::of(reader.by_serde::<&RawValue>()?.get()));
                    return Ok(());
                }
                _ => return reader.skip(),
            };
            if place.is_some() {
                return Err(Fault::new(format_args!("two fields `{key}`")));
            }
            *place = Some(match reader.peek() {
                // Whoever reads it finds what is wrong with it.
                Some(b'{' | b'[') => reader.extent()?,
                _ => reader.by_serde::<&RawValue>()?.get(),
            });
            Ok(())
        })?;
        Ok(reply)
    }
}

impl Reply<'_> {
    /// Whether it bears this id. Some give numbers back as strings or with a fraction.
    pub(super) fn answers(&self, id: u64) -> bool {
        self.id.is_some_and(|told| {
            let bare = told.strip_prefix('"').and_then(|told| told.strip_suffix('"'));
            let bare = bare.unwrap_or(told);
            bare.strip_suffix(".0").unwrap_or(bare).parse() == Ok(id)
        })
    }

    /// No id, or `null`: JSON-RPC's id of an error that came before the request was read.
    pub(super) fn names_no_request(&self) -> bool {
        self.id.is_none_or(|told| told == "null")
    }
}
