//! What somebody at the terminal does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

/// How long it takes at most until the thread that reads notices that nobody listens.
const PATIENCE: Duration = Duration::from_millis(100);
/// Keys that wait to be looked at. Somebody sleeps on the keyboard if there are more.
const WAITING: usize = 64;

/// A key that means something, or another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// `q`, Esc, Ctrl-C.
    Quit,
    /// `p` or the space bar: stand still, or go on.
    Pause,
    /// `f`
    Faults,
    /// The one before.
    Up,
    /// The next one.
    Down,
    /// So many before.
    PageUp,
    /// So many on.
    PageDown,
    /// `1` to `9`, counted from 0.
    Pick(usize),
    /// `0`: all of them.
    All,
    /// Ctrl-Z: let somebody else have the terminal for a while.
    Suspend,
    /// The program stood still, and goes on.
    Resumed,
    /// The terminal has another size.
    Resized,
    /// The terminal is gone.
    Gone,
}

/// Reads keys on a thread of its own, until it is dropped.
pub(crate) struct Keys {
    inputs: mpsc::Receiver<Input>,
    ended: Arc<AtomicBool>,
}

impl Keys {
    /// Begins to read.
    pub(crate) fn read() -> io::Result<Self> {
        let (sender, inputs) = mpsc::channel(WAITING);
        let ended: Arc<AtomicBool> = Arc::default();
        let end = ended.clone();
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while !end.load(Relaxed) {
                let input = match event::poll(PATIENCE)
                    .and_then(|ready| if ready { event::read().map(Some) } else { Ok(None) })
                {
                    Ok(Some(event)) => meaning(&event),
                    Ok(None) => None,
                    Err(_) => Some(Input::Gone),
                };
                let Some(input) = input else { continue };
                // A quit must get through; of the others it does not matter.
                let sent = match input {
                    Input::Quit | Input::Gone => sender.blocking_send(input).is_ok(),
                    input => !matches!(sender.try_send(input), Err(mpsc::error::TrySendError::Closed(_))),
                };
                if !sent || input == Input::Gone {
                    return;
                }
            }
        })?;
        Ok(Self { inputs, ended })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::Gone)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
    }
}

fn meaning(event: &Event) -> Option<Input> {
    match event {
        Event::Resize(..) => Some(Input::Resized),
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => None,
        Event::Key(KeyEvent { code: KeyCode::Char('c' | 'd'), modifiers, .. })
            if modifiers.contains(KeyModifiers::CONTROL) =>
        {
            Some(Input::Quit)
        }
        Event::Key(KeyEvent { code: KeyCode::Char('z'), modifiers, .. })
            if modifiers.contains(KeyModifiers::CONTROL) =>
        {
            Some(Input::Suspend)
        }
        Event::Key(key) => match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Input::Quit),
            KeyCode::Char('p' | 'P' | ' ') => Some(Input::Pause),
            KeyCode::Char('f' | 'F') => Some(Input::Faults),
            KeyCode::Up | KeyCode::Char('k') => Some(Input::Up),
            KeyCode::Down | KeyCode::Char('j') => Some(Input::Down),
            KeyCode::PageUp => Some(Input::PageUp),
            KeyCode::PageDown => Some(Input::PageDown),
            KeyCode::Char('0') | KeyCode::Home => Some(Input::All),
            KeyCode::Char(digit @ '1'..='9') => Some(Input::Pick(digit as usize - '1' as usize)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_out_is_known() {
        let quit = [
            KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE),
            KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
            KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        ];
        for key in quit {
            assert_eq!(meaning(&Event::Key(key)), Some(Input::Quit), "{key:?}");
        }
        assert_eq!(meaning(&Event::Key(KeyEvent::new(KeyCode::Char('3'), KeyModifiers::NONE))), Some(Input::Pick(2)));
        assert_eq!(meaning(&Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE))), None);
    }
}
