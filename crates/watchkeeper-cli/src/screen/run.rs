//! Shows something that changes, until somebody has seen enough.

use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::style::Color as Paint;
use tokio::time::{MissedTickBehavior, interval};

use super::keys::{Input, Keys};
use super::terminal_guard::TerminalGuard;
use crate::failure::{Exit, Failure, Outcome};

/// How often it is drawn anew.
const FRAME: Duration = Duration::from_millis(100);

/// Something that can be shown.
pub(crate) trait View {
    /// Looks at how things are.
    fn look(&mut self);

    /// Draws them.
    fn draw(&self, frame: &mut Frame<'_>);

    /// A key was pressed, other than one that ends it.
    fn key(&mut self, input: Input);
}

/// Shows it until a key ends it, or `end` is there. The terminal is as it was before, then.
pub(crate) async fn run(view: &mut impl View, painted: bool, end: impl Future<Output = ()>) -> Outcome<()> {
    let mut guard = TerminalGuard::take().map_err(|error| no_screen(&error))?;
    let mut keys = Keys::read().map_err(|error| no_screen(&error))?;
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut resumed = Resumed::listen();
    tokio::pin!(end);
    loop {
        let input = tokio::select! {
            biased;
            () = &mut end => return Ok(()),
            input = keys.next() => Some(input),
            () = resumed.next() => Some(Input::Resumed),
            _ = frames.tick() => None,
        };
        if TerminalGuard::has_panicked() {
            return Err(Failure::new(Exit::Error, "the screen has ended, because of the panic above"));
        }
        match input {
            Some(Input::Quit | Input::Gone) => return Ok(()),
            Some(Input::Suspend) => guard.suspend().map_err(|error| no_screen(&error))?,
            Some(Input::Resumed) => guard.take_again().map_err(|error| no_screen(&error))?,
            Some(input) => view.key(input),
            None => view.look(),
        }
        let drawn = guard.terminal.draw(|frame| {
            view.draw(frame);
            if !painted {
                without_colours(frame.buffer_mut());
            }
        });
        drawn.map_err(|error| no_screen(&error))?;
    }
}

/// Tells when the program goes on after it was made to stand still.
struct Resumed {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Resumed {
    fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(
                signal_hook::consts::SIGCONT,
            ))
            .ok(),
        }
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

/// Bold and dim stay: they are no colours.
fn without_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        cell.fg = Paint::Reset;
        cell.bg = Paint::Reset;
    }
}

fn no_screen(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Error, "the screen cannot be drawn").because(error).try_this("have it printed instead: | cat")
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;

    /// Draws, and then no more.
    struct Panics(u32);

    impl View for Panics {
        fn look(&mut self) {
            self.0 += 1;
        }

        fn draw(&self, frame: &mut Frame<'_>) {
            assert!(self.0 < 3, "drawn into {} and no further", frame.area());
        }

        fn key(&mut self, _: Input) {}
    }

    #[tokio::test]
    #[ignore = "needs a terminal: the test below gives it one"]
    async fn panics_while_it_draws() {
        let _ = run(&mut Panics(0), true, std::future::pending()).await;
    }

    #[test]
    fn a_panic_in_drawing_gives_the_terminal_back_and_can_be_read() {
        let pair = native_pty_system().openpty(PtySize::default()).expect("a terminal");
        let before = pair.master.get_termios();
        let mut command = CommandBuilder::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "screen::run::tests::panics_while_it_draws", "--ignored", "--nocapture"]);
        command.env("TERM", "xterm");
        let mut child = pair.slave.spawn_command(command).expect("this program");
        let mut reader = pair.master.try_clone_reader().expect("output");
        drop(pair.slave);
        // A terminal that nobody holds any more ends with an error.
        let (mut output, mut bytes) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = reader.read(&mut bytes) {
            output.extend_from_slice(&bytes[..read]);
        }
        let text = String::from_utf8_lossy(&output);
        let after = |what: &str| text.split(what).last().unwrap_or_default().to_owned();
        assert!(text.contains("\x1b[?1049h"), "there was a screen: {text:?}");
        let left = after("\x1b[?1049l");
        assert!(left.contains("drawn into") && left.contains("\x1b[?25h"), "{text:?}");
        assert_eq!(pair.master.get_termios(), before, "the keys are as they were");
        assert!(!child.wait().expect("an end").success());
    }
}
