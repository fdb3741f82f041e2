//! As much of HTTP/1.1 as clients of a bench need.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Heads of requests are far shorter.
const LONGEST_HEAD: usize = 64 << 10;

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Request {
    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let headers = lines.filter_map(|line| line.split_once(':'));
        Some(Self {
            method,
            path: path.to_owned(),
            query: query.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect(),
        })
    }

    /// A value of the query. (None that is read has characters that must be escaped.)
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Whether a value of the query says so.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.query(name), Some("true" | "1"))
    }

    /// A number of the query, or what it is without one.
    pub(crate) fn number(&self, name: &str, otherwise: u64) -> Result<u64, String> {
        match self.query(name) {
            None | Some("") => Ok(otherwise),
            Some(text) => text.parse().map_err(|_| format!("{name} must be a number, and is {text:?}")),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// A client's connection, for one request after the other.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// The next request; none when the client has closed the connection.
    pub(crate) fn request(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if self.unread.len() > LONGEST_HEAD {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if !self.read_more()? {
                return Ok(None);
            }
        };
        let request = std::str::from_utf8(&self.unread[..end]).ok().and_then(Request::parse);
        let request = request.ok_or(io::ErrorKind::InvalidData)?;
        self.unread.drain(..end + 4);
        // Nothing that is read here has a body that says anything.
        let body: usize = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while self.unread.len() < body {
            if !self.read_more()? {
                return Ok(None);
            }
        }
        self.unread.drain(..body);
        Ok(Some(request))
    }

    fn read_more(&mut self) -> io::Result<bool> {
        let mut space = [0; 8 << 10];
        let count = self.stream.read(&mut space)?;
        self.unread.extend_from_slice(&space[..count]);
        Ok(count > 0)
    }

    /// Whether the client is gone. It says nothing while it watches.
    pub(crate) fn is_closed(&self) -> bool {
        let look = || {
            self.stream.set_nonblocking(true)?;
            let seen = self.stream.peek(&mut [0]);
            self.stream.set_nonblocking(false)?;
            seen
        };
        match look() {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// The head of an answer. Without a length its body comes in chunks.
    pub(crate) fn head(&mut self, code: u16, content_type: &str, length: Option<usize>) -> io::Result<()> {
        let reason = match code {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            410 => "Gone",
            _ => "Error",
        };
        let length = match length {
            Some(length) => format!("Content-Length: {length}"),
            None => "Transfer-Encoding: chunked".to_owned(),
        };
        let head = format!("HTTP/1.1 {code} {reason}\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n");
        self.stream.write_all(head.as_bytes())
    }

    /// An answer.
    pub(crate) fn answer(&mut self, code: u16, content_type: &str, body: &[u8]) -> io::Result<()> {
        self.head(code, content_type, Some(body.len()))?;
        self.stream.write_all(body)
    }
}
