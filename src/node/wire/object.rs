//! A JSON object read field by field, with what is not known kept aside.

use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Fields that the reader does not know, as the node wrote them; `null` ones say nothing and are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extra(Vec<(String, String)>);

impl Extra {
    pub(super) fn keep(&mut self, key: String, value: &RawValue) {
        if value.get() != "null" {
            self.0.push((key, compact(value.get())));
        }
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

/// The text of an object's key, given to `F` without a copy.
pub(super) struct KeySeed<F>(pub(super) F);

impl<'de, K, F: FnOnce(&str) -> K> serde::de::DeserializeSeed<'de> for KeySeed<F> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<K, F: FnOnce(&str) -> K> Visitor<'_> for KeySeed<F> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<K, E> {
        Ok((self.0)(text))
    }
}

/// Anything at all, passed over.
pub(super) struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
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

        impl<'de> serde::de::Deserialize<'de> for $name {
            fn deserialize<D: serde::de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types, dead_code, reason = "a variant for each field, named after it")]
                enum Key { $($field,)+ Skip, Unknown(String) }

                fn key(text: &str) -> Key {
                    match text {
                        $($key $(| $alias)* => Key::$field,)+
                        $($skip => Key::Skip,)*
                        other => Key::Unknown(object!(@unknown $extra other)),
                    }
                }

                struct ObjectVisitor;

                impl<'de> serde::de::Visitor<'de> for ObjectVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        use serde::de::Error as _;
                        let mut object = $name::default();
                        while let Some(found) = map.next_key_seed($crate::node::wire::object::KeySeed(key))? {
                            match found {
                                $(Key::$field => {
                                    let value = map.next_value::<Option<$type>>().map_err(|error| {
                                        A::Error::custom(format_args!(concat!("`", $key, "`: {}"), error))
                                    })?;
                                    if object.$field.is_none() {
                                        object.$field = value;
                                    }
                                })+
                                Key::Skip => {
                                    map.next_value::<$crate::node::wire::object::Skipped>()?;
                                }
                                Key::Unknown(name) => object!(@keep $extra object map name),
                            }
                        }
                        Ok(object)
                    }
                }

                deserializer.deserialize_map(ObjectVisitor)
            }
        }
    };
    (@unknown kept $text:ident) => { $text.to_owned() };
    (@unknown dropped $text:ident) => {{ let _ = $text; String::new() }};
    (@keep kept $object:ident $map:ident $name:ident) => {{
        let value = $map.next_value::<&'de serde_json::value::RawValue>()?;
        $object.extra.keep($name, value);
    }};
    (@keep dropped $object:ident $map:ident $name:ident) => {{
        let _ = ($name, &$object.extra);
        $map.next_value::<$crate::node::wire::object::Skipped>()?;
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
            extra.keep(key.to_owned(), raw);
        }
        assert_eq!(
            extra.into_text().as_deref(),
            Some("{\"a\":{\"c\":1},\"b\":\"0x1\"}")
        );
        assert_eq!(Extra::default().into_text(), None);
    }
}
