//! Commas and keys: an object or an array that is being written.

use super::writer;
use crate::model::U256;
use uuid::Uuid;

/// An object that is being written. Keys are plain identifiers and are not escaped.
///
/// The closing brace is written by [`Object::end`].
#[derive(Debug)]
#[must_use = "an object is closed by `end`"]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    /// Opens an object.
    #[inline]
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a key and gives the buffer, for a value of any kind.
    #[inline]
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.out
            .extend_from_slice(if self.empty { b"\"".as_slice() } else { b",\"" });
        self.empty = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A field whose value is text.
    #[inline]
    pub fn string(&mut self, key: &str, value: &str) {
        writer::string(self.key(key), value);
    }

    /// A field whose value is hex text.
    #[inline]
    pub fn hex(&mut self, key: &str, value: impl AsRef<[u8]>) {
        writer::hex(self.key(key), value.as_ref());
    }

    /// A field whose value is hex text or `null`.
    #[inline]
    pub fn hex_or_null(&mut self, key: &str, value: Option<impl AsRef<[u8]>>) {
        writer::hex_or_null(self.key(key), value.as_ref().map(AsRef::as_ref));
    }

    /// A field of hex text that is left out when there is no value.
    #[inline]
    pub fn hex_if_known(&mut self, key: &str, value: Option<impl AsRef<[u8]>>) {
        if let Some(value) = value {
            self.hex(key, value);
        }
    }

    /// A field whose value is a JSON-RPC quantity.
    #[inline]
    pub fn quantity(&mut self, key: &str, value: impl Into<u128>) {
        writer::quantity(self.key(key), value);
    }

    /// A quantity that is left out when there is no value.
    #[inline]
    pub fn quantity_if_known(&mut self, key: &str, value: Option<impl Into<u128>>) {
        if let Some(value) = value {
            self.quantity(key, value);
        }
    }

    /// A field whose value is a JSON-RPC quantity of 256 bits.
    #[inline]
    pub fn quantity_u256(&mut self, key: &str, value: &U256) {
        writer::quantity_u256(self.key(key), value);
    }

    /// A field whose value is decimal text.
    #[inline]
    pub fn decimal(&mut self, key: &str, value: u64) {
        writer::decimal(self.key(key), value);
    }

    /// A field whose value is decimal text of an amount.
    #[inline]
    pub fn decimal_u256(&mut self, key: &str, value: &U256) {
        writer::decimal_u256(self.key(key), value);
    }

    /// A field whose value is a JSON integer.
    #[inline]
    pub fn integer(&mut self, key: &str, value: impl Into<u64>) {
        writer::integer(self.key(key), value.into());
    }

    /// A field whose value is a JSON integer of any size: `digits` are its digits.
    #[inline]
    pub fn integer_text(&mut self, key: &str, digits: &str) {
        self.key(key).extend_from_slice(digits.as_bytes());
    }

    /// A field whose value is `true` or `false`.
    #[inline]
    pub fn boolean(&mut self, key: &str, value: bool) {
        writer::boolean(self.key(key), value);
    }

    /// A field whose value is `null`.
    #[inline]
    pub fn null(&mut self, key: &str) {
        writer::null(self.key(key));
    }

    /// A field whose value is a UUID as text.
    #[inline]
    pub fn uuid(&mut self, key: &str, value: Uuid) {
        writer::uuid(self.key(key), value);
    }

    /// A field whose value is an array.
    #[inline]
    pub fn array<I: IntoIterator>(&mut self, key: &str, items: I, write: impl FnMut(&mut Vec<u8>, I::Item)) {
        array(self.key(key), items, write);
    }

    /// Closes the object.
    #[inline]
    pub fn end(self) {
        self.out.push(b'}');
    }

    /// Closes the object after the fields that a node gave and we do not know; the object has a field already.
    #[inline]
    pub fn end_with_extra(self, extra: Option<&str>) {
        writer::extra_fields(self.out, extra);
        self.end();
    }
}

/// Appends an array, each item by `write`.
pub fn array<I: IntoIterator>(out: &mut Vec<u8>, items: I, mut write: impl FnMut(&mut Vec<u8>, I::Item)) {
    out.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn fields_are_separated_and_closed() {
        let mut out = Vec::new();
        Object::begin(&mut out).end();
        assert_eq!(out, b"{}");

        out.clear();
        let mut object = Object::begin(&mut out);
        object.string("text", "a\"b");
        object.hex("hex", [0_u8, 255]);
        object.hex_or_null("none", None::<[u8; 1]>);
        object.hex_if_known("left out", None::<[u8; 1]>);
        object.quantity("quantity", 255_u64);
        object.quantity_if_known("left out", None::<u64>);
        object.quantity_u256("word", &U256::from(1));
        object.decimal("decimal", 7);
        object.decimal_u256("amount", &U256::from(8));
        object.integer("integer", 9_u32);
        object.boolean("flag", true);
        object.null("null");
        object.array("list", [1_u64, 2], writer::integer);
        object.array("empty", [], writer::integer);
        object.end_with_extra(Some("{\"l1\":\"0x1\"}"));
        let expected = json!({
            "text": "a\"b", "hex": "0x00ff", "none": null, "quantity": "0xff", "word": "0x1",
            "decimal": "7", "amount": "8", "integer": 9, "flag": true, "null": null,
            "list": [1, 2], "empty": [], "l1": "0x1",
        });
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), expected);
    }
}
