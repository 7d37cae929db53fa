//! What comes of an answer, while it comes.

/// What comes of an answer, kept as long as it is no longer than it may be.
pub(super) struct Kept<'a> {
    body: &'a mut Vec<u8>,
    most: usize,
    came: usize,
}

impl<'a> Kept<'a> {
    /// Into `body`, which is emptied before; `most` bytes at most.
    pub(super) fn new(body: &'a mut Vec<u8>, most: usize) -> Self {
        body.clear();
        Self { body, most, came: 0 }
    }

    /// Takes what comes next.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.came += bytes.len();
        if self.came <= self.most {
            self.body.extend_from_slice(bytes);
        }
    }

    /// That all of it is there, or why not.
    pub(super) fn end(self) -> Result<(), String> {
        let Self { most, came, .. } = self;
        if came <= most {
            return Ok(());
        }
        Err(format!("an answer of {came} bytes, of which {most} are taken"))
    }
}

/// What an answer begins and ends with, but for white space: so much of it is looked at while it is timed.
#[derive(Default)]
pub(super) struct Ends {
    first: Option<u8>,
    last: Option<u8>,
}

impl Ends {
    /// Takes what comes next.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let is_shown = |byte: &&u8| !byte.is_ascii_whitespace();
        self.first = self.first.or_else(|| bytes.iter().find(is_shown).copied());
        self.last = bytes.iter().rev().find(is_shown).copied().or(self.last);
    }

    /// Whether it may be an object.
    pub(super) fn are_of_object(&self) -> bool {
        (self.first, self.last) == (Some(b'{'), Some(b'}'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_long_is_not_kept() {
        let mut body = vec![9];
        let mut kept = Kept::new(&mut body, 3);
        for part in [&b"abc"[..], b"d", b"e"] {
            kept.take(part);
        }
        assert!(kept.end().is_err());
        assert_eq!(body, b"abc");
    }

    #[test]
    fn an_object_is_known_by_its_ends() {
        for (parts, is_one) in [
            (&["{", "}"][..], true),
            (&["\n{\"logs\"", ":[]}\r", "\n"], true),
            (&["{}"], true),
            (&["{\"logs\":["], false),
            (&["[{}", "]"], false),
            (&["<html>}"], false),
            (&[" "], false),
            (&[], false),
        ] {
            let mut ends = Ends::default();
            parts.iter().for_each(|part| ends.take(part.as_bytes()));
            assert_eq!(ends.are_of_object(), is_one, "{parts:?}");
        }
    }
}
