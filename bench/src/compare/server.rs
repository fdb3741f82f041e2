//! The load server, in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ends with its owner.
pub(crate) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts a server, and waits until it has rendered its pods.
    pub(crate) fn start(program: &Path, pods: u32) -> Result<Self, String> {
        let mut child = Command::new(program)
            .args(["--pods", &pods.to_string(), "--with-stdin"])
            // Open as long as this process lives, however it ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the load server {} cannot be run: {error}", program.display()))?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url).map_err(|error| error.to_string())?;
        }
        let server = Self { child, url: url.trim().to_owned() };
        if server.url.starts_with("http://") {
            Ok(server)
        } else {
            Err(format!("the load server for {pods} pods did not start; what it said is above"))
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// All pods as at first.
    pub(crate) fn reset(&self) -> Result<(), String> {
        self.ask("POST", "/control/reset").map(drop)
    }

    /// The CPU time that the server has used.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let answer = self.ask("GET", "/control/usage").ok()?;
        serde_json::from_str::<serde_json::Value>(&answer).ok()?.get("cpu_s")?.as_f64()
    }

    fn ask(&self, method: &str, path: &str) -> Result<String, String> {
        let ask = || {
            let mut stream = TcpStream::connect(self.url.trim_start_matches("http://"))?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            write!(stream, "{method} {path} HTTP/1.1\r\nHost: load-server\r\n\r\n")?;
            let mut answer = BufReader::new(stream);
            let (mut length, mut line) = (0, String::new());
            while answer.read_line(&mut line)? > 2 {
                if let Some(text) = line.strip_prefix("Content-Length: ") {
                    length = text.trim().parse().unwrap_or(0);
                }
                line.clear();
            }
            let mut body = vec![0; length];
            answer.read_exact(&mut body)?;
            Ok(String::from_utf8_lossy(&body).into_owned())
        };
        ask().map_err(|error: std::io::Error| format!("the load server does not answer {method} {path}: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
