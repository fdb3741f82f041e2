//! Where does the output go, and what if nobody reads it any more?
//!
//! An [`Output`] gathers what one change prints and hands it on when it is flushed, which the printer does after every
//! change: `watchkeeper watch pods | awk ...` sees each row when it happens, and no row in halves.
//!
//! When the reader is gone (`| head -1`), writing fails with an error that [`is_reader_gone`] knows. That is no failure
//! of the program: it ends quietly, with exit code 0.

use std::error::Error;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};

/// A writer that is handed on when it is flushed.
#[derive(Debug)]
pub(crate) struct Output<W: Write = Stdout> {
    inner: BufWriter<W>,
}

impl Output {
    /// The standard output.
    pub(crate) fn stdout() -> Self {
        Self::over(io::stdout())
    }
}

impl<W: Write> Output<W> {
    /// Over another writer.
    pub(crate) fn over(writer: W) -> Self {
        Self { inner: BufWriter::with_capacity(64 << 10, writer) }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes).map_err(name_broken_pipe)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().map_err(name_broken_pipe)
    }
}

/// The error says that nobody reads the output any more: the program ends quietly.
pub(crate) fn is_reader_gone(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<ReaderGone>())
}

/// What a broken pipe becomes, so that one of a connection is not taken for one of the output.
#[derive(Debug)]
struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the output any more")
    }
}

impl Error for ReaderGone {}

fn name_broken_pipe(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => io::Error::new(ErrorKind::BrokenPipe, ReaderGone),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn failure(kind: ErrorKind) -> Option<io::Error> {
        let mut output = Output::over(Failing(kind));
        output.write_all(b"row\n").and_then(|()| output.flush()).err()
    }

    #[test]
    fn a_broken_pipe_of_the_output_is_told_from_every_other_error() {
        assert!(failure(ErrorKind::BrokenPipe).is_some_and(|error| is_reader_gone(&error)));
        assert!(failure(ErrorKind::StorageFull).is_some_and(|error| !is_reader_gone(&error)));
        assert!(!is_reader_gone(&ErrorKind::BrokenPipe.into()), "the one of a connection");
    }

    #[test]
    fn a_row_goes_out_whole_when_it_is_flushed() {
        let mut written = Vec::new();
        let mut output = Output::over(&mut written);
        assert!(output.write_all(b"half").is_ok());
        assert!(output.write_all(b" a row\n").is_ok());
        assert!(output.inner.get_ref().is_empty());
        assert!(output.flush().is_ok());
        drop(output);
        assert_eq!(written, b"half a row\n");
    }
}
