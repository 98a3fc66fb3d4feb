//! What the kernel's sockets do by themselves: what the adapter's way over UDP is held against.

#![allow(unsafe_code, reason = "two options of sockets, and processor time")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Load, pin, report, spread};

/// So much goes into one call, as in the adapter.
const BATCH: usize = 60_000;
const BUFFER: usize = 4 << 20;
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: usize) {
    let value = value as libc::c_int;
    // SAFETY: the value lives across the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn open() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER);
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, BUFFER);
    socket
}

fn start(role: &str) -> (Child, u16, BufReader<ChildStdout>) {
    let me = std::env::current_exe().expect("this program");
    let mut child = Command::new(me)
        .env("SPEED_ROLE", role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    pin(0);
    let port = line.trim().parse().expect("a port");
    (child, port, lines)
}

/// The other process.
pub(crate) fn serve(words: &[&str]) {
    pin(1);
    match words[0] {
        "raw-receive" => receive(),
        "raw-echo" => echo(),
        _ => drain(),
    }
}

fn receive() {
    let socket = open();
    set(&socket, libc::SOL_UDP, UDP_GRO, 1);
    println!("{}", socket.local_addr().expect("bound").port());
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    let begin = Load::now();
    loop {
        let length = socket.recv(&mut buffer).expect("a datagram");
        if length == 1 {
            break;
        }
        bytes += length;
    }
    println!("{bytes} {}", begin.spent());
}

fn echo() {
    let socket = open();
    socket.set_nonblocking(true).expect("an option");
    println!("{}", socket.local_addr().expect("bound").port());
    let mut buffer = [0; 64];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        if length == 1 {
            break;
        }
        socket.send_to(&buffer[..length], from).expect("sent");
    }
}

fn drain() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("bound").port());
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut buffer = vec![0; 128 << 10];
    let mut bytes = 0;
    let begin = Load::now();
    loop {
        match stream.read(&mut buffer).expect("bytes") {
            0 => break,
            length => bytes += length,
        }
    }
    println!("{bytes} {}", begin.spent());
}

/// Reads what the other process has to say at its end.
fn told(mut lines: BufReader<ChildStdout>, mut child: Child) -> (f64, f64) {
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    child.wait().expect("it ends");
    let mut numbers = line.split_whitespace().map(|word| word.parse::<f64>());
    let mut next = || numbers.next().expect("a number").expect("a number");
    (next(), next())
}

/// Datagrams with segmentation and coalescing by the kernel, one after the other without any protocol: what arrives.
pub(crate) fn datagrams(payload: usize) {
    // IPv4's payload of a RoCEv2 write in the middle of a message: BTH, payload, ICRC.
    let length = 12 + payload + 4;
    let (child, port, lines) = start("raw-receive");
    let socket = open();
    socket.connect(("127.0.0.1", port)).expect("a peer");
    set(&socket, libc::SOL_UDP, UDP_SEGMENT, length);
    let buffer = vec![7; BATCH / length * length];
    let (begin, load) = (Instant::now(), Load::now());
    let mut sent = 0_usize;
    while begin.elapsed() < Duration::from_secs(2) {
        sent += socket.send(&buffer).expect("sent");
    }
    let (seconds, ours) = (begin.elapsed().as_secs_f64(), load.spent());
    // The queue in between may be full: the last word gets through in the end.
    let mut child = child;
    while child.try_wait().expect("it is ours").is_none() {
        let _ = socket.send(&[0]);
        std::thread::sleep(Duration::from_millis(5));
    }
    let (received, theirs) = told(lines, child);
    report(
        received / payload as f64 / seconds,
        payload,
        ours + theirs,
        seconds,
    );
    let lost = 100.0 * (1.0 - received / sent as f64);
    println!("{:44}{lost:.0} % of what was sent was lost", "");
}

/// One datagram to and fro, both ends asking again and again.
pub(crate) fn ping() {
    let (mut child, port, _lines) = start("raw-echo");
    let socket = open();
    socket.connect(("127.0.0.1", port)).expect("a peer");
    socket.set_nonblocking(true).expect("an option");
    let (mut buffer, mut times) = ([0; 64], Vec::new());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        let start = Instant::now();
        socket.send(&[1; 36]).expect("sent");
        while socket.recv(&mut buffer).is_err() {}
        times.push(start.elapsed());
    }
    socket.send(&[0]).expect("sent");
    child.wait().expect("it ends");
    spread(times);
}

/// A TCP connection.
pub(crate) fn stream() {
    let (child, port, lines) = start("tcp-drain");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a peer");
    let buffer = vec![7; 128 << 10];
    let (begin, load) = (Instant::now(), Load::now());
    while begin.elapsed() < Duration::from_secs(2) {
        stream.write_all(&buffer).expect("sent");
    }
    drop(stream);
    let ours = load.spent();
    let (received, theirs) = told(lines, child);
    let seconds = begin.elapsed().as_secs_f64();
    let size = buffer.len();
    report(
        received / size as f64 / seconds,
        size,
        ours + theirs,
        seconds,
    );
}
