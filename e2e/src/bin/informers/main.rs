//! Suite `informers`.

use std::process::ExitCode;

use watchkeeper_e2e::{Arguments, Programs, Report};

#[tokio::main]
async fn main() -> ExitCode {
    let _arguments = Arguments::read();
    let report = Report::new("informers", &[]);
    let _programs = match Programs::find() {
        Ok(programs) => programs,
        Err(not_here) => return report.skip(&not_here),
    };
    report.finish()
}
