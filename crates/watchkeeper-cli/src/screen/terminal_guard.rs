//! The terminal while a screen is shown, and as it was before.

use std::io::{self, IsTerminal as _, Stdout, Write};
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
    pub(crate) terminal: Terminal<CrosstermBackend<WhileTaken>>,
}

/// The terminal while it is a screen, and nothing afterwards. ratatui shows the cursor when it is dropped and says on stderr
/// if it cannot, which panics where the terminal is gone.
pub(crate) struct WhileTaken(Stdout);

impl Write for WhileTaken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if TAKEN.load(SeqCst) { self.0.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if TAKEN.load(SeqCst) { self.0.flush() } else { Ok(()) }
    }
}

impl TerminalGuard {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Self> {
        restore_on_panic();
        open().map(|terminal| Self { terminal }).inspect_err(|_| give_back())
    }

    /// Gives the terminal back, stands still until somebody wants to go on, and takes it again.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        give_back();
        #[cfg(unix)]
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.take_again()
    }

    /// Takes the terminal anew: whoever had it meanwhile may have changed everything about it.
    pub(crate) fn take_again(&mut self) -> io::Result<()> {
        give_back();
        self.terminal = open().inspect_err(|_| give_back())?;
        Ok(())
    }

    /// Whether something panicked since. The terminal is as it was, then, and must not be drawn on.
    pub(crate) fn has_panicked() -> bool {
        PANICKED.load(SeqCst)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes a screen of the terminal, on which nothing has been drawn.
fn open() -> io::Result<Terminal<CrosstermBackend<WhileTaken>>> {
    enable_raw_mode()?;
    TAKEN.store(true, SeqCst);
    execute!(io::stdout(), EnterAlternateScreen)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(WhileTaken(io::stdout())))?;
    // No `clear`: it asks where the cursor is, which not every terminal answers. The second screen is empty.
    terminal.hide_cursor()?;
    Ok(terminal)
}

/// Gives the terminal back as it was, if it is a screen. If it is gone, there is nobody to tell.
pub(crate) fn give_back() {
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
        give_back();
        before(panic);
    }));
}
