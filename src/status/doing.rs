//! What a chain's sync does at the moment and what is said of it, in one place: a flag and the sentence never contradict each other.

/// How what is said of a full disk begins.
const DISK_FULL: &str = "the disk is full, waiting for room";
/// What is said where a commit waits for anything else of the disk.
const MERGING: &str = "tables are flushed and merged, writing waits for them";
const TIP: &str = "following the tip";
const BACKFILL: &str = "backfilling";

/// Flags, and what the sentence is made of.
#[derive(Debug)]
pub(super) struct Doing {
    /// Whether backfill is over.
    pub(super) following: bool,
    /// Whether something is waited out.
    pub(super) troubled: bool,
    /// Whether the sync ended by itself.
    pub(super) stopped: bool,
    /// The next block whose traces are fetched after it was stored, and the last one.
    pub(super) filling: Option<(u64, u64)>,
    /// What tells that the disk is full, while it is.
    full: Option<String>,
    /// Whether tables are waited for, as long as nothing else is said.
    merging: bool,
    /// What is said in place of what follows from the rest.
    words: Option<String>,
}

impl Default for Doing {
    fn default() -> Self {
        Self {
            following: false,
            troubled: false,
            stopped: false,
            filling: None,
            full: None,
            merging: false,
            // Nothing is done yet.
            words: Some(String::new()),
        }
    }
}

impl Doing {
    /// The sentence.
    pub(super) fn message(&self) -> String {
        match (&self.words, &self.full) {
            _ if self.merging => MERGING.to_owned(),
            (Some(words), _) => words.clone(),
            (None, Some(told_by)) => format!("{DISK_FULL}: {told_by}"),
            (None, None) => self.at_work(),
        }
    }

    /// What the sync does while nothing keeps it from that.
    fn at_work(&self) -> String {
        if let Some((first, last)) = self.filling {
            return format!(
                "fetching the traces of blocks {first} to {last}, the head stands still meanwhile"
            );
        }
        let word = if self.following { TIP } else { BACKFILL };
        word.to_owned()
    }

    /// Says something, or what follows from the rest.
    pub(super) fn say(&mut self, words: Option<String>) {
        self.merging = false;
        self.words = words;
    }

    /// What keeps the next block away is said on.
    pub(super) fn say_unless_waiting(&mut self, words: Option<String>) {
        if !self.troubled && !self.disk_full() {
            self.say(words);
        }
    }

    pub(super) const fn disk_full(&self) -> bool {
        self.full.is_some()
    }

    pub(super) fn wait_for_room(&mut self, told_by: String) {
        self.full = Some(told_by);
        self.say(None);
    }

    /// What was said since of anything else stays.
    pub(super) fn has_room(&mut self) {
        self.full = None;
    }

    pub(super) const fn wait_for_merges(&mut self, waits: bool) {
        self.merging = waits;
    }
}

#[cfg(test)]
mod tests {
    use crate::status::ChainStatus;

    #[test]
    fn what_comes_between_a_full_disk_and_its_sentence_leaves_no_sentence_without_flag() {
        struct Between<'a>(&'a ChainStatus);
        impl std::fmt::Display for Between<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.has_room();
                f.write_str("no space")
            }
        }
        let status = ChainStatus::default();
        status.wait_for_room(&Between(&status));
        let full = "the disk is full, waiting for room: no space";
        assert_eq!((status.disk_full(), status.message().as_str()), (true, full));
        status.has_room();
        assert_eq!(
            (status.disk_full(), status.message().as_str()),
            (false, "backfilling")
        );
    }

    #[test]
    fn a_fill_is_told_of_again_after_what_was_waited_out() {
        let status = ChainStatus::default();
        let fill = "fetching the traces of blocks 7 to 9, the head stands still meanwhile";
        status.fill(7, 9);
        status.trouble("no answer");
        status.went_on();
        assert_eq!(status.message(), fill);
        status.wait_for_room(&"no space");
        status.has_room();
        assert_eq!(status.message(), fill);
        status.ends_filling();
        assert_eq!(
            (status.message().as_str(), status.filling_to()),
            ("backfilling", None)
        );
    }

    /// Merges are waited out over whatever is said, until anything else is.
    #[test]
    fn merges_are_told_of_until_they_are_over_or_something_else_is() {
        let merging = "tables are flushed and merged, writing waits for them";
        let status = ChainStatus::default();
        status.trouble("no answer");
        status.wait_for_merges(true);
        assert_eq!(status.message(), merging);
        status.wait_for_merges(false);
        assert_eq!(status.message(), "no answer");
        status.wait_for_merges(true);
        status.set_message("unheard of");
        assert_eq!(status.message(), "unheard of");
        status.wait_for_merges(false);
        assert_eq!(status.message(), "unheard of");
        status.wait_for_merges(true);
        status.wait_for_room(&"no space");
        status.wait_for_merges(false);
        assert!(status.disk_full() && status.message().ends_with(": no space"));
    }
}
