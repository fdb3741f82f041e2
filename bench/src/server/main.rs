//! A server of pods that is never the bottleneck: all that it sends is rendered before, as far as memory allows.

mod api;
mod control;
mod frames;
mod http;
mod pods;
mod protobuf;
mod ready;
mod state;
mod templates;
#[cfg(test)]
mod tests;
mod values;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::frames::status;
use crate::http::{Connection, Request};
use crate::pods::Pods;
use crate::state::State;
use crate::templates::Format;

/// Serves pods to informers that are measured. bench/README.md says what it answers.
#[derive(Parser)]
struct Arguments {
    /// How many pods there are
    #[arg(long, default_value_t = 1000)]
    pods: u32,
    /// The port on 127.0.0.1; any free one without
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// In which formats pods are served. Each takes memory
    #[arg(long, value_delimiter = ',', default_value = "json,protobuf")]
    formats: Vec<Format>,
    /// Up to how many pods are rendered ahead: 7.7 KB each in JSON, 5.5 KB in protobuf
    #[arg(long, default_value_t = 100_000)]
    ready_up_to: usize,
    /// End when the standard input does, which is when whoever started the server is gone
    #[arg(long)]
    with_stdin: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let pods = Pods::new(arguments.pods)?;
    let state = Arc::new(State::new(pods, arguments.formats, arguments.ready_up_to));
    let port = arguments.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("port {port} cannot be had: {error}; try another --port, or none"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    println!("http://{address}");
    if arguments.with_stdin {
        std::thread::spawn(|| {
            // Whatever comes, and however it ends.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            std::process::exit(0);
        });
    }
    for stream in listener.incoming() {
        let state = Arc::clone(&state);
        match stream {
            // A connection that breaks is the client's affair.
            Ok(stream) => drop(std::thread::spawn(move || serve(&state, stream))),
            Err(error) => eprintln!("a connection could not be taken: {error}"),
        }
    }
    Ok(())
}

fn serve(state: &Arc<State>, stream: TcpStream) -> io::Result<()> {
    let mut connection = Connection::new(stream)?;
    while let Some(request) = connection.request()? {
        answer(state, &request, &mut connection)?;
    }
    Ok(())
}

fn answer(state: &Arc<State>, request: &Request, connection: &mut Connection) -> io::Result<()> {
    let json = |connection: &mut Connection, body: &str| connection.answer(200, "application/json", body.as_bytes());
    match request.path.as_str() {
        "/api/v1/pods" if request.method == "GET" => api::pods(state, request, connection),
        path if path.starts_with("/control/") => control::answer(state, request, connection),
        "/version" => json(connection, r#"{"major":"1","minor":"36","gitVersion":"v1.36.4"}"#),
        "/api" => json(connection, r#"{"kind":"APIVersions","versions":["v1"]}"#),
        "/apis" => json(connection, r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#),
        "/api/v1" => json(
            connection,
            r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["list","watch"]}]}"#,
        ),
        _ => {
            let message = "this server has pods of all namespaces, and nothing else";
            connection.answer(404, "application/json", status(404, "NotFound", message).as_bytes())
        }
    }
}
