//! The program in a terminal of its own, and what it shows there.

pub mod svg;

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::{Parser, Screen};

/// Nothing takes this long, unless it hangs; but machines may be very busy.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// The program, running.
pub struct Session {
    parser: Arc<Mutex<Parser>>,
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// How keys were read before.
    before: String,
    reader: Option<JoinHandle<()>>,
}

/// How it ended, and what the terminal shows then.
pub struct Ended {
    pub code: u32,
    pub reads_keys_as_before: bool,
    pub screen: Screen,
}

impl Session {
    /// Starts the program in a terminal of this size.
    pub fn start(arguments: &[&str], columns: u16, lines: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, lines)).expect("a terminal");
        let before = modes(&*pair.master);
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_watchkeeper"));
        command.args(arguments);
        command.env("TERM", "xterm-256color");
        for unwanted in ["NO_COLOR", "RUST_LOG", "KUBECONFIG", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(unwanted);
        }
        let child = pair.slave.spawn_command(command).expect("the program");
        // With it the terminal would never end.
        drop(pair.slave);
        let parser = Arc::new(Mutex::new(Parser::new(number(lines), number(columns), 0)));
        let (mut output, shown) = (pair.master.try_clone_reader().expect("output"), parser.clone());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                lock(&shown).process(&bytes[..read]);
            }
        });
        let writer = pair.master.take_writer().expect("input");
        Self { parser, master: pair.master, writer, child, before, reader: Some(reader) }
    }

    /// Waits until the screen is as it should be.
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&Screen) -> bool) {
        let begun = Instant::now();
        while !is_so(lock(&self.parser).screen()) {
            assert!(begun.elapsed() < LONG, "there is no {what}:\n{}", self.screen().contents());
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until these texts are on the screen.
    pub fn wait_for_texts(&self, texts: &[&str]) {
        self.wait_for(&texts.join(", "), |screen| {
            let contents = screen.contents();
            texts.iter().all(|text| contents.contains(text))
        });
    }

    /// What is on the screen.
    pub fn screen(&self) -> Screen {
        lock(&self.parser).screen().clone()
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).and_then(|()| self.writer.flush()).expect("the program reads");
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        lock(&self.parser).set_size(number(lines), number(columns));
        self.master.resize(size(columns, lines)).expect("another size");
    }

    /// The number of the process.
    pub fn process(&self) -> u32 {
        self.child.process_id().expect("a process")
    }

    /// Waits until the program has ended.
    pub fn end(mut self) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(begun.elapsed() < LONG, "it does not end:\n{}", self.screen().contents());
            std::thread::sleep(LOOK);
        };
        self.reader.take().map(JoinHandle::join);
        let reads_keys_as_before = modes(&*self.master) == self.before;
        Ended { code: status.exit_code(), reads_keys_as_before, screen: self.screen() }
    }
}

/// A test that fails leaves no program behind.
impl Drop for Session {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
        }
    }
}

impl Ended {
    /// The terminal is as it was before: no second screen, a cursor, and keys in lines.
    pub fn assert_restored(&self) {
        assert!(!self.screen.alternate_screen(), "still the second screen");
        assert!(!self.screen.hide_cursor(), "still no cursor");
        assert!(self.reads_keys_as_before, "still every key by itself");
    }
}

/// How the terminal reads keys, and what else it does.
fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios())
}

fn size(columns: u16, lines: u16) -> PtySize {
    PtySize { rows: lines, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn number(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("more than nothing")
}

fn lock(parser: &Mutex<Parser>) -> MutexGuard<'_, Parser> {
    parser.lock().unwrap_or_else(PoisonError::into_inner)
}
