//! A text is read as `serde_json` reads it, or refused as it refuses it.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

/// Any value, by way of the parts of the reader.
struct Any(Value);

impl<'a> FromJson<'a> for Any {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        Ok(Self(match reader.peek() {
            Some(b'{') => {
                let mut object = serde_json::Map::new();
                reader.object(|reader, key| {
                    let value = Self::read(reader)?.0;
                    object.insert(key.to_owned(), value);
                    Ok(())
                })?;
                Value::Object(object)
            }
            Some(b'[') => {
                let mut items = Vec::new();
                reader.array(|reader| {
                    items.push(Self::read(reader)?.0);
                    Ok(())
                })?;
                Value::Array(items)
            }
            Some(b'"') => Value::from(&*reader.string()?),
            _ if reader.null() => Value::Null,
            _ => match reader.boolean() {
                Some(value) => Value::from(value),
                None => reader
                    .integer()
                    .map_or_else(|| reader.by_serde(), |value| Ok(value.into()))?,
            },
        }))
    }
}

/// Holds the reader against `serde_json` on a text, right or wrong.
fn agree(text: &str) {
    let expected = serde_json::from_str::<Value>(text).ok();
    assert_eq!(read::<Any>(text).ok().map(|any| any.0), expected, "{text}");
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let mut reader = Reader::new(text);
    let skipped = reader.skip().and_then(|()| reader.end());
    assert_eq!(skipped.is_ok(), is_json, "{text}");
    let mut reader = Reader::new(text);
    let extent = reader.extent().ok();
    if expected.is_some() {
        assert_eq!(extent.map(str::trim), Some(text.trim()), "{text}");
        assert!(reader.end().is_ok());
    }
}

#[test]
fn what_serde_json_refuses_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "nullx",
        "tru",
        "01",
        "-",
        "-1",
        "1.5",
        "1e3",
        "0",
        "18446744073709551616",
        "\"",
        "\"a",
        "\"a\\\"",
        "\"\\u00e9\"",
        "\"\\x\"",
        "\"a\nb\"",
        "\"\\ud83d\"",
        "{\"\\ud83d\":1}",
        "\"\u{1f600}\"",
        "{",
        "{}",
        "{ }",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\\u0062\":[1,{\"c\":null}]}",
        "[",
        "[]",
        "[ ]",
        "[,]",
        "[1,]",
        "[1 2]",
        "[[]]",
        "[]]",
        "{}{}",
        "[1}",
        " [true , false ] ",
        "\"12345678\\\"\"",
        "\"1234567\"",
    ] {
        agree(text);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        ".{0,24}".prop_map(Value::from),
        "[\"\\\\a-f\u{0}-\u{20}]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(".{0,9}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_read_as_serde_json_reads_it(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        agree(&text.unwrap());
    }

    #[test]
    fn a_broken_text_is_refused_as_serde_json_refuses_it(value in value(), at in 0_usize..200, with in any::<Option<char>>()) {
        let text: Vec<char> = value.to_string().chars().collect();
        let at = at % text.len();
        let spoilt: String = text[..at].iter().copied().chain(with).chain(text[at + 1..].iter().copied()).collect();
        agree(&spoilt);
    }

    #[test]
    fn a_string_ends_at_the_first_byte_that_is_more_than_itself(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let expected = bytes.iter().position(stops).unwrap_or(bytes.len());
        prop_assert_eq!(plain_length(&bytes), expected);
    }
}
