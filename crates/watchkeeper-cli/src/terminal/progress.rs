//! How far are the first lists?
//!
//! One line per kind on stderr, `pods 12,431 objects, 3.1 s`, while it is being read, and nothing of it left afterwards.
//! Where stderr is no terminal, nothing is written at all.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{count, escape_text, seconds};

/// Lines that a person cannot read change too often.
const REDRAW: Duration = Duration::from_millis(100);

/// The lines of all kinds that are being read.
#[derive(Debug)]
pub(crate) struct Progress {
    lines: MultiProgress,
}

/// The line of one kind. Dropping it clears the line.
#[derive(Debug)]
pub(crate) struct KindProgress {
    name: String,
    started: Instant,
    drawn: Option<Instant>,
    line: ProgressBar,
}

impl Progress {
    /// On stderr, if that is a terminal.
    pub(crate) fn stderr() -> Self {
        Self::on(ProgressDrawTarget::stderr())
    }

    fn on(target: ProgressDrawTarget) -> Self {
        Self { lines: MultiProgress::with_draw_target(target) }
    }

    /// Begins the line of a kind, named by its plural.
    pub(crate) fn kind(&self, name: &str) -> KindProgress {
        let line = self.lines.add(ProgressBar::new_spinner());
        // The template is ours, and right; the default one would do.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            line.set_style(style);
        }
        let mut kind =
            KindProgress { name: escape_text(name).into_owned(), started: Instant::now(), drawn: None, line };
        kind.objects(0);
        kind
    }

    /// Takes the lines off the screen until one of them changes, so that something else can be written.
    pub(crate) fn clear(&self) {
        // Where a terminal is gone, there are no lines.
        let _ = self.lines.clear();
    }
}

impl KindProgress {
    /// So many objects have come.
    pub(crate) fn objects(&mut self, number: u64) {
        if self.line.is_hidden() || self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        self.line.set_message(line(&self.name, number, self.started.elapsed()));
        self.line.tick();
    }
}

impl Drop for KindProgress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

fn line(name: &str, number: u64, elapsed: Duration) -> String {
    let noun = if number == 1 { "object" } else { "objects" };
    format!("{name} {} {noun}, {}", count(number), seconds(elapsed))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that notes what is written to it.
    #[derive(Clone)]
    struct Screen(Arc<Mutex<vt100::Parser>>);

    impl std::fmt::Debug for Screen {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Screen")
        }
    }

    impl Screen {
        fn new() -> Self {
            Self(Arc::new(Mutex::new(vt100::Parser::default())))
        }

        fn send(&self, bytes: &str) -> io::Result<()> {
            self.0.lock().map_err(|_| io::Error::other("poisoned"))?.process(bytes.as_bytes());
            Ok(())
        }

        fn contents(&self) -> String {
            self.0.lock().map(|parser| parser.screen().contents()).unwrap_or_default()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, n: usize) -> io::Result<()> {
            if n > 0 { self.send(&format!("\x1b[{n}A")) } else { Ok(()) }
        }

        fn move_cursor_down(&self, n: usize) -> io::Result<()> {
            if n > 0 { self.send(&format!("\x1b[{n}B")) } else { Ok(()) }
        }

        fn move_cursor_right(&self, n: usize) -> io::Result<()> {
            if n > 0 { self.send(&format!("\x1b[{n}C")) } else { Ok(()) }
        }

        fn move_cursor_left(&self, n: usize) -> io::Result<()> {
            if n > 0 { self.send(&format!("\x1b[{n}D")) } else { Ok(()) }
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.send(&format!("{text}\r\n"))
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.send(text)
        }

        fn clear_line(&self) -> io::Result<()> {
            self.send("\r\x1b[2K")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_kind_has_a_line_until_it_is_done() {
        let screen = Screen::new();
        let progress = Progress::on(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        let pods = progress.kind("pods");
        let hostile = progress.kind("no\x1b[2Jdes");
        let shown = screen.contents();
        assert!(shown.contains("pods 0 objects, "), "{shown:?}");
        assert!(shown.contains("no^[[2Jdes 0 objects, "), "{shown:?}");
        drop((pods, hostile));
        assert_eq!(screen.contents().trim(), "");
    }

    #[test]
    fn a_line_is_for_people() {
        assert_eq!(line("pods", 12_431, Duration::from_millis(3_100)), "pods 12,431 objects, 3.1 s");
        assert_eq!(line("nodes", 1, Duration::from_millis(40)), "nodes 1 object, 40 ms");
    }
}
