//! A JSON object read field by field, with what is not known kept aside.

use serde_json::value::RawValue;

/// Fields that the reader does not know, as the node wrote them; `null` ones say nothing and are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extra(Vec<(String, String)>);

impl Extra {
    pub(super) fn keep(&mut self, key: &str, value: &RawValue) {
        if value.get() != "null" {
            self.0.push((key.to_owned(), compact(value.get())));
        }
    }

    /// Keeps a quantity that was read and has no place elsewhere.
    pub(super) fn keep_quantity(&mut self, key: &str, value: u64) {
        self.0.push((key.to_owned(), format!("\"{value:#x}\"")));
    }

    /// One compact JSON object, keys in byte order so that the order a node chose leaves no trace.
    pub(super) fn into_text(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort();
        let mut text = String::from("{");
        for (place, (key, value)) in self.0.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(key.as_str()).to_string());
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Some(text)
    }
}

/// JSON text without white space between tokens.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_text, mut escaped) = (false, false);
    for c in json.chars() {
        if in_text {
            out.push(c);
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == '"' {
                in_text = false;
            }
        } else if !c.is_ascii_whitespace() {
            out.push(c);
            in_text = c == '"';
        }
    }
    out
}

/// Declares a struct of optional fields and how it is read from a JSON object: each field has its JSON
/// name (and other names some clients use), a `null` counts as absent, names under `skip` are known and
/// derivable, and all others are kept in `extra` (`extra: kept`) or passed over (`extra: dropped`).
/// Errors name the field. A field given twice keeps the first value that is not `null`.
macro_rules! object {
    ($(#[$meta:meta])* $name:ident {
        $($field:ident: $type:ty = $key:literal $(| $alias:literal)*),+ $(,)?
    } skip { $($skip:literal),* $(,)? } extra: $extra:ident) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $name {
            $(pub(super) $field: Option<$type>,)+
            pub(super) extra: $crate::node::wire::object::Extra,
        }

        impl<'a> $crate::node::reader::FromJson<'a> for $name {
            fn read(
                reader: &mut $crate::node::reader::Reader<'a>,
            ) -> Result<Self, $crate::node::reader::Fault> {
                let mut object = Self::default();
                reader.object(|reader, key| {
                    match key {
                        $($key $(| $alias)* => {
                            let value = <Option<$type> as $crate::node::reader::FromJson<'a>>::read(reader)
                                .map_err(|fault| fault.within(concat!("`", $key, "`")))?;
                            if object.$field.is_none() {
                                object.$field = value;
                            }
                        })+
                        $($skip => reader.skip()?,)*
                        other => object!(@other $extra object reader other),
                    }
                    Ok(())
                })?;
                Ok(object)
            }
        }
    };
    (@other kept $object:ident $reader:ident $key:ident) => {{
        let value = $reader.by_serde::<&'a serde_json::value::RawValue>()?;
        $object.extra.keep($key, value);
    }};
    (@other dropped $object:ident $reader:ident $key:ident) => {{
        let _ = ($key, &$object.extra);
        $reader.skip()?;
    }};
}

pub(super) use object;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compacting_leaves_texts_alone() {
        assert_eq!(
            compact("{ \"a b\" : [ 1 , \"x \\\" y\" ] }"),
            "{\"a b\":[1,\"x \\\" y\"]}"
        );
    }

    #[test]
    fn extras_are_one_object_in_key_order_without_nulls() {
        let mut extra = Extra::default();
        for (key, value) in [("b", "\"0x1\""), ("a", "{ \"c\": 1 }"), ("n", "null")] {
            let raw: &RawValue = serde_json::from_str(value).unwrap();
            extra.keep(key, raw);
        }
        assert_eq!(
            extra.into_text().as_deref(),
            Some("{\"a\":{\"c\":1},\"b\":\"0x1\"}")
        );
        assert_eq!(Extra::default().into_text(), None);
    }
}
