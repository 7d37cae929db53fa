//! Standard error: lines of the log and bars, written by a thread of its own.
//!
//! Whoever reads standard error may be slow or may have stopped (a full pipe, a terminal after Ctrl-S), and nobody who logs
//! waits for that: lines are taken into memory and written some milliseconds later, many at once. With 4 MiB of them there
//! lines of requests are lost, with 8 MiB all others; how many is told in the log when it is taken again, and by `/metrics`.
//! Bars of several chains are drawn below each other, and below the lines.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use crate::clock;
use crate::http::REQUEST_TARGET;
use crate::metrics::Page;

/// Lines of requests are taken into memory up to this many bytes of lines, all others up to twice as many.
const REQUESTS_MAX: usize = 4 << 20;
const LINES_MAX: usize = 2 * REQUESTS_MAX;
/// What is drawn while the terminal takes nothing; more is not drawn.
const FRAMES_MAX: usize = 64 << 10;
/// So much is written at once.
const PIECE: usize = 64 << 10;
/// Lines that come so soon after others are written with the next ones.
const TOGETHER: Duration = Duration::from_millis(10);
/// Bars are drawn so often a second at most.
const FRAMES_PER_SECOND: u8 = 10;
/// The end of a command waits so long for a reader that takes nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

static STDERR: OnceLock<Printer> = OnceLock::new();
static BARS: LazyLock<MultiProgress> = LazyLock::new(|| {
    MultiProgress::with_draw_target(match is_screen() {
        true => ProgressDrawTarget::term_like_with_hz(Box::new(Screen::default()), FRAMES_PER_SECOND),
        false => ProgressDrawTarget::hidden(),
    })
});

/// Whether standard error is a terminal that moves its cursor.
fn is_screen() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether lines are coloured: on a terminal, unless `NO_COLOR` is there and not empty.
pub(super) fn is_coloured() -> bool {
    is_screen() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Begins to write; before, and where no thread can be had, whoever logs writes.
pub(super) fn start() {
    let begun = std::thread::Builder::new().name("log".to_owned()).spawn(|| {
        let printer = STDERR.get_or_init(Printer::default);
        printer.run(&mut std::io::stderr(), |show| BARS.suspend(show));
    });
    if begun.is_ok() {
        STDERR.get_or_init(Printer::default);
    }
}

/// Writes a line, after all that was logged before.
pub(super) fn say(line: &str) {
    take(format!("{line}\n").as_bytes(), LINES_MAX);
}

/// Writes what is for standard output among the lines, where both are one terminal with bars on it; tells whether it did.
pub(super) fn takes_output(text: &[u8]) -> bool {
    use std::io::IsTerminal as _;
    let both = (std::io::stdout(), std::io::stderr());
    let printer = STDERR
        .get()
        .filter(|_| is_screen() && both.0.is_terminal() && is_same(&both.0, &both.1));
    if let Some(printer) = printer {
        printer.line(text, usize::MAX);
    }
    printer.is_some()
}

/// Whether two devices are one, by whatever names they were opened.
fn is_same(one: &impl AsFd, other: &impl AsFd) -> bool {
    let device = |file: BorrowedFd<'_>| rustix::fs::fstat(file).ok().map(|told| told.st_rdev);
    device(one.as_fd()).is_some_and(|found| device(other.as_fd()) == Some(found))
}

/// Waits until all is written, and no longer than so for a reader that takes nothing.
pub(super) fn flush(patience: Duration) {
    if let Some(printer) = STDERR.get() {
        printer.flush(patience);
    }
}

/// A bar in indicatif's template, below those that are there; hidden elsewhere than on a terminal.
pub(super) fn bar(template: &str) -> ProgressBar {
    let bar = BARS.add(ProgressBar::no_length());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Tells how many lines were lost.
pub(super) fn measure(page: &mut Page) {
    let lost = STDERR
        .get()
        .map_or(0, |printer| printer.lost.load(Ordering::Relaxed));
    let help = "Lines of the log that were not written, as nobody took those before them.";
    page.counter("quarry_log_lines_lost", help, &[], lost);
}

/// Takes a line, where less than `most` bytes of lines wait.
fn take(line: &[u8], most: usize) {
    match STDERR.get() {
        Some(printer) => printer.line(line, most),
        None => write(line),
    }
}

/// A line that cannot be written is lost, and nothing else is.
fn write(text: &[u8]) {
    let _ = std::io::stderr().lock().write_all(text);
}

/// Where the log's lines go. (tracing-subscriber would say on standard error that one cannot be written, and panic where that
/// fails, too.)
pub(super) struct Log;

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line(LINES_MAX)
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line {
        Line(match meta.target() {
            REQUEST_TARGET => REQUESTS_MAX,
            _ => LINES_MAX,
        })
    }
}

/// Takes a line, where no more than so many bytes wait.
pub(super) struct Line(usize);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        take(line, self.0);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What waits to be written.
#[derive(Default)]
struct Printer {
    waiting: Mutex<Waiting>,
    /// Something waits.
    came: Condvar,
    /// Something was written.
    written: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// What comes on the screen as it is: bars, and lines above them.
    frames: Vec<u8>,
    /// Bytes of bars in it.
    drawn: usize,
    /// The thread waits to be woken.
    is_idle: bool,
    /// The thread writes what waited before.
    is_writing: bool,
    /// How often something was written.
    writes: u64,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.frames.is_empty()
    }
}

impl Printer {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread, where it waits for that.
    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        if std::mem::take(&mut waiting.is_idle) {
            drop(waiting);
            self.came.notify_one();
        }
    }

    /// Takes a line, where less than `most` bytes of lines wait.
    fn line(&self, line: &[u8], most: usize) {
        let mut waiting = self.waiting();
        if waiting.lines.len() >= most {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.lines.extend_from_slice(line);
        self.wake(waiting);
    }

    /// Takes what is drawn, where not much else waits to be.
    fn frame(&self, frame: &str) {
        let mut waiting = self.waiting();
        if waiting.drawn < FRAMES_MAX {
            waiting.drawn += frame.len();
            waiting.frames.extend_from_slice(frame.as_bytes());
            self.wake(waiting);
        }
    }

    /// Writes what comes, for ever. `above` calls what shows lines while no bar is drawn.
    fn run(&self, output: &mut impl Write, above: impl Fn(&mut dyn FnMut())) {
        let (mut lines, mut frames) = (Vec::new(), Vec::new());
        let mut told = 0;
        loop {
            let mut waiting = self.waiting();
            while waiting.is_empty() {
                waiting.is_idle = true;
                waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            (waiting.is_idle, waiting.is_writing) = (false, true);
            std::mem::swap(&mut waiting.lines, &mut lines);
            drop(waiting);
            if !lines.is_empty() {
                above(&mut || self.waiting().frames.append(&mut lines));
            }
            let mut waiting = self.waiting();
            waiting.drawn = 0;
            std::mem::swap(&mut waiting.frames, &mut frames);
            drop(waiting);
            // In pieces, so that a reader that is slow is told from one that has stopped.
            for piece in frames.chunks(PIECE) {
                let _ = output.write_all(piece);
                self.waiting().writes += 1;
                self.written.notify_all();
            }
            let _ = output.flush();
            self.waiting().is_writing = false;
            self.written.notify_all();
            frames.clear();
            frames.shrink_to(FRAMES_MAX);
            lines.shrink_to(FRAMES_MAX);
            let lost = self.lost.load(Ordering::Relaxed);
            if lost > told {
                let lines = lost - told;
                tracing::warn!(
                    lines,
                    "lines of the log are lost: who reads it takes them too slowly"
                );
                told = lost;
            }
            std::thread::sleep(TOGETHER);
        }
    }

    /// Waits until all is written, no longer than `patience` for any piece of it.
    fn flush(&self, patience: Duration) {
        let mut waiting = self.waiting();
        let mut moved = (waiting.writes, clock::now());
        while waiting.is_writing || !waiting.is_empty() {
            if waiting.writes != moved.0 {
                moved = (waiting.writes, clock::now());
            }
            let Some(left) = patience.checked_sub(clock::now() - moved.1) else {
                return;
            };
            let woken = self.written.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The terminal as bars are drawn on it.
#[derive(Debug, Default)]
struct Screen(Mutex<String>);

impl Screen {
    fn put(&self, text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
        let mut drawn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::fmt::Write::write_fmt(&mut *drawn, text).map_err(std::io::Error::other)
    }

    /// Moves the cursor, by ECMA-48's sequences.
    fn moves(&self, by: usize, to: char) -> std::io::Result<()> {
        match by {
            0 => Ok(()),
            _ => self.put(format_args!("\x1b[{by}{to}")),
        }
    }

    /// Columns and rows of standard error's terminal, where it tells.
    fn size() -> Option<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        Self::size().map_or(80, |(columns, _)| columns)
    }

    fn height(&self) -> u16 {
        Self::size().map_or(24, |(_, rows)| rows)
    }

    fn move_cursor_up(&self, by: usize) -> std::io::Result<()> {
        self.moves(by, 'A')
    }

    fn move_cursor_down(&self, by: usize) -> std::io::Result<()> {
        self.moves(by, 'B')
    }

    fn move_cursor_right(&self, by: usize) -> std::io::Result<()> {
        self.moves(by, 'C')
    }

    fn move_cursor_left(&self, by: usize) -> std::io::Result<()> {
        self.moves(by, 'D')
    }

    fn write_line(&self, text: &str) -> std::io::Result<()> {
        self.put(format_args!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> std::io::Result<()> {
        self.put(format_args!("{text}"))
    }

    fn clear_line(&self) -> std::io::Result<()> {
        self.put(format_args!("\r\x1b[2K"))
    }

    fn flush(&self) -> std::io::Result<()> {
        let drawn = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        match STDERR.get() {
            Some(printer) => printer.frame(&drawn),
            None => write(drawn.as_bytes()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    #[test]
    fn a_device_is_told_from_others_however_often_it_is_opened() {
        let open = |name: &str| std::fs::File::open(name).unwrap();
        let (null, zero) = (open("/dev/null"), open("/dev/zero"));
        assert!(is_same(&null, &open("/dev/null")) && !is_same(&null, &zero));
    }

    /// A reader that takes a piece when it is told to.
    struct Slow {
        may: Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            // Once nobody says any more when, all is taken.
            let _ = self.may.recv();
            self.taken.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A printer, what lets its reader take a piece, and what was taken.
    fn printer() -> (Arc<Printer>, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let printer = Arc::new(Printer::default());
        let (may_take, may) = channel();
        let taken = Arc::default();
        let mut output = Slow {
            may,
            taken: Arc::clone(&taken),
        };
        let own = Arc::clone(&printer);
        std::thread::spawn(move || own.run(&mut output, |show| show()));
        (printer, may_take, taken)
    }

    /// The same, whose thread holds a first line and waits.
    fn holding() -> (Arc<Printer>, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let held = printer();
        held.0.line(b"first\n", LINES_MAX);
        while !held.0.waiting().lines.is_empty() {
            std::thread::yield_now();
        }
        held
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn nobody_waits_for_the_reader_and_lines_stay_in_order() {
        let (printer, may_take, taken) = printer();
        let lines: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
        for line in lines.split_inclusive('\n') {
            printer.line(line.as_bytes(), LINES_MAX);
        }
        let began = clock::now();
        printer.flush(Duration::from_millis(50));
        assert!(clock::now() - began < LONG, "the end waits for ever");
        assert!(taken.lock().unwrap().is_empty());
        drop(may_take);
        printer.flush(LONG);
        assert_eq!(String::from_utf8_lossy(&taken.lock().unwrap()), lines);
        assert_eq!(printer.lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_counted() {
        let (printer, may_take, taken) = holding();
        let line = [b'x'; 1023];
        for _ in 0..3 * LINES_MAX / 1024 {
            printer.line(&line, REQUESTS_MAX);
        }
        let requests = REQUESTS_MAX.div_ceil(line.len());
        let lost = 3 * LINES_MAX / 1024 - requests;
        assert_eq!(printer.lost.load(Ordering::Relaxed), lost as u64);
        printer.line(b"others have room\n", LINES_MAX);
        assert_eq!(printer.lost.load(Ordering::Relaxed), lost as u64);
        drop(may_take);
        printer.flush(LONG);
        let taken = taken.lock().unwrap();
        assert_eq!(taken.len(), 6 + requests * line.len() + 17);
        assert!(taken.ends_with(b"xothers have room\n"));
    }

    #[test]
    fn the_end_waits_for_a_reader_that_is_only_slow() {
        let (printer, may_take, taken) = printer();
        let line = vec![b'x'; 20 * PIECE];
        printer.line(&line, LINES_MAX);
        let reader = std::thread::spawn(move || {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(100));
                may_take.send(()).unwrap();
            }
            may_take
        });
        // Less than all of it takes.
        printer.flush(Duration::from_millis(1500));
        assert_eq!(taken.lock().unwrap().len(), line.len());
        drop(reader.join().unwrap());
    }

    #[test]
    fn bars_are_bounded_too() {
        let (printer, may_take, taken) = holding();
        for _ in 0..10 * FRAMES_MAX / 100 {
            printer.frame(&"=".repeat(100));
        }
        drop(may_take);
        printer.flush(LONG);
        assert!((FRAMES_MAX..FRAMES_MAX + 200).contains(&taken.lock().unwrap().len()));
    }
}
