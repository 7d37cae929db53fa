//! Entries of JSON, handed out as they come: of an array, or of an array somewhere in an object.

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::ImportError;
use super::reading::Bounds;

/// By which names an object is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// The array of entries.
    pub(super) list: &'static str,
    /// What an object has that is an entry itself.
    pub(super) entry: &'static str,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outline {
    /// An array of entries.
    Array,
    /// An object with an array of entries.
    List,
    /// An entry itself.
    Entry,
    /// An object that is none of these.
    Neither,
}

/// Reads a file; an object is looked at where there are names.
pub(super) struct Elements<'a> {
    pub(super) names: Option<Names>,
    pub(super) bounds: &'a Bounds,
    pub(super) each: &'a mut dyn FnMut(u64, &RawValue) -> Result<(), ImportError>,
    /// Takes the error that `each` ended the reading with.
    pub(super) failed: &'a mut Option<ImportError>,
}

impl Elements<'_> {
    pub(super) fn read<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Outline, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn array<'de, A: SeqAccess<'de>>(&mut self, mut elements: A) -> Result<(), A::Error> {
        let mut number = 0;
        self.bounds.begin(false);
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            number += 1;
            if let Err(error) = (self.each)(number, &element) {
                *self.failed = Some(error);
                return Err(A::Error::custom("stopped"));
            }
            self.bounds.begin(false);
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Outline;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.names {
            Some(_) => "an array or an object",
            None => "an array",
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, elements: A) -> Result<Outline, A::Error> {
        self.array(elements).map(|()| Outline::Array)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Outline, A::Error> {
        let Some(names) = self.names else {
            return Err(A::Error::custom("an object stands where an array belongs"));
        };
        let (mut has_list, mut is_entry) = (false, false);
        while let Some(name) = fields.next_key::<String>()? {
            if name != names.list {
                is_entry |= name == names.entry;
                self.bounds.begin(true);
                fields.next_value::<IgnoredAny>()?;
            } else if has_list {
                return Err(A::Error::custom(format!("`{name}` stands there twice")));
            } else {
                has_list = true;
                fields.next_value_seed(List(&mut self))?;
            }
            self.bounds.begin(false);
        }
        Ok(match (has_list, is_entry) {
            (true, _) => Outline::List,
            (false, true) => Outline::Entry,
            (false, false) => Outline::Neither,
        })
    }
}

/// The array in an object.
struct List<'a, 'b>(&'a mut Elements<'b>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<(), A::Error> {
        self.0.array(elements)
    }
}
