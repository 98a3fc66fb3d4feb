//! Connections that give up: nobody waits for ever for a server that is away.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Connects to `HOST:PORT`, to the first of its addresses that answers within `patience`. Reads and writes then wait no
/// longer than that, either.
///
/// # Errors
/// If the name is not known, or nobody answers; a wait that was too long says so.
pub(crate) fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = None;
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = Some(explained(error, patience)),
        }
    }
    Err(last.unwrap_or_else(|| {
        io::Error::new(ErrorKind::NotFound, format!("`{address}` has no address"))
    }))
}

/// The error, in words where it is a wait that was too long: the system calls that "resource temporarily unavailable".
pub(crate) fn explained(error: io::Error, patience: Duration) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => io::Error::new(
            ErrorKind::TimedOut,
            format!("no answer within {} s", patience.as_secs_f64()),
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// A server that takes the connection and says nothing.
    #[test]
    fn who_says_nothing_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let patience = Duration::from_millis(50);
        let address = silent.local_addr().unwrap().to_string();
        let mut stream = connect(&address, patience).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        let error = explained(error, patience);
        assert_eq!(error.to_string(), "no answer within 0.05 s");
        drop(silent);
        assert_eq!(
            connect(&address, patience).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
    }
}
