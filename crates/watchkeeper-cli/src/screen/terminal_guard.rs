//! The terminal while a screen is shown, and as it was before.

use std::io::{self, IsTerminal as _, Stdout, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

/// The terminal is a screen at this moment.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Something panicked, wherever it was, while it was one.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Whether a screen can be shown: there is a terminal, it can move its cursor, and nothing else is written to it.
pub(crate) fn is_possible() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    // What is logged would tear the screen.
    let is_logged = tracing::level_filters::LevelFilter::current() != tracing::level_filters::LevelFilter::OFF;
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb && !(is_logged && io::stderr().is_terminal())
}

/// Holds the terminal as a screen. Dropping it gives it back as it was, and so does a panic.
pub(crate) struct TerminalGuard {
    /// What is drawn on.
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TerminalGuard {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        TAKEN.store(true, SeqCst);
        let taken = execute!(io::stdout(), EnterAlternateScreen).and_then(|()| {
            let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
            // No `clear`: it asks where the cursor is, which not every terminal answers. The second screen is empty.
            terminal.hide_cursor()?;
            Ok(Self { terminal })
        });
        taken.inspect_err(|_| restore())
    }

    /// Whether something panicked since. The terminal is as it was, then, and must not be drawn on.
    pub(crate) fn has_panicked() -> bool {
        PANICKED.load(SeqCst)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. If it is gone, there is nobody to tell.
fn restore() {
    if TAKEN.swap(false, SeqCst) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// A panic's message has to be read, so the screen goes first.
fn restore_on_panic() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.swap(true, SeqCst) {
        return;
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, SeqCst);
        restore();
        before(panic);
    }));
}
