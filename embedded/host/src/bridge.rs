//! The bridge: several hosts on the line of one gate, which takes one client.
//!
//! ```text
//! host ─▶ cut into pieces ─┐                       ┌─▶ queue ─▶ host
//! host ─▶ cut into pieces ─┼─▶ one at a time ─▶ gate ─▶ queue ─▶ host
//! host ─▶ cut into pieces ─┘                       └─▶ queue ─▶ host
//! ```
//!
//! - **Pieces.** A host's bytes are kept until a zero byte, the largest frame, 50 ms of silence or the connection's
//!   end, and then go to the gate in one piece, junk included. Zeros at the front of a frame stay with it, so that
//!   they still end whatever junk another host has left on the line.
//! - **Fair.** A host holds one piece until it has its turn, and is not read from meanwhile: one that floods is slowed
//!   down alone, and whoever waits for a turn gets it in order.
//! - **Never held up.** Every host gets every answer as long as it takes them. One that does not (stopped, or slow)
//!   loses the oldest once [`QUEUE`] reads of the gate are waiting, and stays connected: an answer that was lost is as
//!   one that was lost on the line. Its client asks again.
//!
//! What the operating system buffers between bridge and gate is a queue that nobody can overtake: it should be short.
//! [`connect`] makes it so, through a socket in the file system; a TCP receiver takes in 64 KiB and more whatever the
//! sender asks for, which at an emulated UART's 24 kB/s is seconds.

use crate::transport::Line;
use fencegate_wire::MAX_FRAME;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// After how long a silence what a host has sent is a piece.
pub const SILENCE: Duration = Duration::from_millis(50);
/// How many reads of the gate's answers a host may be behind.
pub const QUEUE: usize = 256;
/// How long a host that has said its last still gets answers.
const LINGER: Duration = Duration::from_secs(5);
/// How long a system that is out of connections is left alone.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the last answers may take to reach the hosts after the gate is gone.
const FAREWELL: Duration = Duration::from_millis(200);

type Answers = Arc<[u8]>;

/// Connects to the emulator's side of a line, a socket in the file system, with next to no queue in between.
#[cfg(unix)]
pub async fn connect(path: &std::path::Path) -> io::Result<tokio::net::UnixStream> {
    let stream = tokio::net::UnixStream::connect(path).await?;
    // The system doubles it and has a least value, some 4 kB. What the other end has not read counts against it.
    rustix::net::sockopt::set_socket_send_buffer_size(&stream, MAX_FRAME)?;
    Ok(stream)
}

/// Lets next to nothing queue up of what a host has sent: whoever floods the line and leaves is soon forgotten.
#[cfg(unix)]
fn shorten(host: &tokio::net::TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_recv_buffer_size(host, MAX_FRAME)?)
}

/// Elsewhere the system's own queue has to do.
#[cfg(not(unix))]
fn shorten(_: &tokio::net::TcpStream) -> io::Result<()> {
    Ok(())
}

/// Joins the hosts that connect to `listener` with `gate`, until the gate's side ends.
///
/// # Errors
/// Where the gate's side breaks. A host that breaks is gone, and nothing else.
pub async fn serve(listener: TcpListener, gate: impl Line) -> io::Result<()> {
    let (middle, turn) = Middle::new();
    let mut hosts = JoinSet::new();
    let welcome = async {
        loop {
            match listener.accept().await {
                Ok((host, _)) => {
                    let _ = host.set_nodelay(true); // slower without, and no worse
                    let _ = shorten(&host); // likewise
                    hosts.spawn(middle.host(host));
                }
                Err(_) => sleep(PAUSE).await,
            }
            while hosts.try_join_next().is_some() {}
        }
    };
    let ended = tokio::select! {
        ended = middle.gate(gate, turn) => ended,
        () = welcome => Ok(()),
    };
    drop(middle);
    // Each host ends when it has its last answer; one that does not take it is cut off.
    let _ = timeout(FAREWELL, async { while hosts.join_next().await.is_some() {} }).await;
    ended
}

/// What stands between the hosts and the gate.
struct Middle {
    /// One place: whose piece is next. Those who wait for it get it in the order in which they came.
    pieces: mpsc::Sender<Vec<u8>>,
    /// What the gate says; a host that is too far behind loses the oldest.
    answers: broadcast::Sender<Answers>,
}

impl Middle {
    fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (pieces, turn) = mpsc::channel(1);
        (Self { pieces, answers: broadcast::channel(QUEUE).0 }, turn)
    }

    /// The gate's side, until it ends.
    async fn gate(&self, gate: impl Line, mut turn: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
        let (mut from, mut to) = tokio::io::split(gate);
        let write = async {
            while let Some(piece) = turn.recv().await {
                to.write_all(&piece).await?;
                to.flush().await?;
            }
            Ok(())
        };
        let read = async {
            let mut bytes = [0; 4_096];
            loop {
                let read = from.read(&mut bytes).await?;
                match bytes.get(..read) {
                    None | Some([]) => return Ok(()),
                    Some(bytes) => drop(self.answers.send(bytes.into())), // without hosts nobody hears it
                }
            }
        };
        tokio::select! { ended = write => ended, ended = read => ended }
    }

    /// One host's side, until it has left or the gate has.
    fn host(&self, host: impl Line + 'static) -> impl Future<Output = ()> + Send + 'static {
        let (from, to) = tokio::io::split(host);
        let said = cut(from, self.pieces.clone());
        let heard = deliver(to, self.answers.subscribe());
        async move {
            let said = async {
                said.await;
                sleep(LINGER).await;
            };
            let heard = async {
                if let Heard::All = heard.await {
                    return;
                }
                std::future::pending::<()>().await; // what it has said is still passed on
            };
            tokio::select! { () = said => (), () = heard => () }
        }
    }
}

/// Cuts what a host says into pieces and passes them on, each in its turn, until it has said its last.
async fn cut(mut host: impl AsyncRead + Unpin, pieces: mpsc::Sender<Vec<u8>>) {
    let mut piece = Vec::new();
    let mut bytes = [0; MAX_FRAME];
    loop {
        let patience = if piece.is_empty() { Duration::MAX } else { SILENCE };
        let read = match timeout(patience, host.read(&mut bytes)).await {
            Ok(Ok(read)) => bytes.get(..read).unwrap_or_default(),
            Ok(Err(_)) => &[],
            Err(_silence) => {
                if pieces.send(std::mem::take(&mut piece)).await.is_err() {
                    return;
                }
                continue;
            }
        };
        for byte in read {
            piece.push(*byte);
            let is_over = *byte == 0 && piece.iter().any(|byte| *byte != 0);
            if (is_over || piece.len() == MAX_FRAME) && pieces.send(std::mem::take(&mut piece)).await.is_err() {
                return;
            }
        }
        if read.is_empty() {
            if !piece.is_empty() {
                let _ = pieces.send(piece).await; // the gate may be gone too
            }
            return;
        }
    }
}

/// How a host's hearing ended.
enum Heard {
    /// It has every answer that there was, and no more will come.
    All,
    /// It takes no more.
    Enough,
}

/// Passes the gate's answers on to a host.
async fn deliver(mut host: impl AsyncWrite + Unpin, mut answers: broadcast::Receiver<Answers>) -> Heard {
    loop {
        let answer = match answers.recv().await {
            Ok(answer) => answer,
            Err(broadcast::error::RecvError::Lagged(_)) => continue, // the oldest are lost
            Err(broadcast::error::RecvError::Closed) => return Heard::All,
        };
        if host.write_all(&answer).await.is_err() || host.flush().await.is_err() {
            return Heard::Enough;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    /// A bridge in memory: the gate's end of the line, and hosts as they come.
    struct Bench {
        middle: Arc<Middle>,
        gate: DuplexStream,
        _line: JoinHandle<io::Result<()>>,
    }

    impl Bench {
        /// A line that holds `queue` bytes between bridge and gate.
        fn new(queue: usize) -> Self {
            let (gate, side) = duplex(queue);
            let (middle, turn) = Middle::new();
            let middle = Arc::new(middle);
            let line = Arc::clone(&middle);
            Self { middle, gate, _line: tokio::spawn(async move { line.gate(side, turn).await }) }
        }

        fn host(&self) -> DuplexStream {
            let (host, side) = duplex(1_024);
            tokio::spawn(self.middle.host(side));
            host
        }

        /// What the gate has got once nothing more comes for a second.
        async fn got(&mut self) -> Vec<u8> {
            let mut got = Vec::new();
            let mut bytes = [0; 4_096];
            while let Ok(Ok(n)) = timeout(Duration::from_secs(1), self.gate.read(&mut bytes)).await {
                got.extend_from_slice(&bytes[..n]);
            }
            got
        }

        /// The next piece, with the time since `since` at which it came.
        async fn piece(&mut self, since: Instant) -> (Vec<u8>, Duration) {
            let mut bytes = [0; 4_096];
            let n = self.gate.read(&mut bytes).await.unwrap();
            (bytes[..n].to_vec(), since.elapsed())
        }
    }

    async fn hears(host: &mut DuplexStream, want: &[u8]) {
        let mut got = vec![0; want.len()];
        timeout(Duration::from_secs(1), host.read_exact(&mut got)).await.expect("it comes").unwrap();
        assert_eq!(got, want);
    }

    const LINE: usize = 1 << 16;

    #[tokio::test(start_paused = true)]
    async fn frames_of_two_hosts_are_not_mixed_however_they_arrive() {
        let mut bench = Bench::new(LINE);
        let (mut a, mut b) = (bench.host(), bench.host());
        for (x, y) in b"\x00aaaaaa\x00".iter().zip(b"\x00bbbbbb\x00") {
            a.write_all(&[*x]).await.unwrap();
            b.write_all(&[*y]).await.unwrap();
            sleep(Duration::from_millis(40)).await;
        }
        assert_eq!(bench.got().await, b"\x00aaaaaa\x00\x00bbbbbb\x00");
    }

    #[tokio::test(start_paused = true)]
    async fn a_zero_byte_passes_a_frame_on_at_once() {
        let mut bench = Bench::new(LINE);
        let mut a = bench.host();
        let start = Instant::now();
        a.write_all(b"\0frame\0").await.unwrap();
        assert_eq!(bench.piece(start).await, (b"\0frame\0".to_vec(), Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn junk_is_one_piece_after_50_ms_of_silence() {
        let mut bench = Bench::new(LINE);
        let mut a = bench.host();
        let start = Instant::now();
        for byte in b"junk" {
            a.write_all(&[*byte]).await.unwrap();
            sleep(Duration::from_millis(49)).await;
        }
        let after = Duration::from_millis(3 * 49 + 50);
        let (piece, came) = bench.piece(start).await;
        assert_eq!(piece, b"junk");
        assert!(came >= after && came < after + Duration::from_millis(5), "{came:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn junk_is_one_piece_at_the_connections_end() {
        let mut bench = Bench::new(LINE);
        let mut a = bench.host();
        let start = Instant::now();
        a.write_all(b"half a fra").await.unwrap();
        drop(a);
        assert_eq!(bench.piece(start).await, (b"half a fra".to_vec(), Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn no_piece_is_longer_than_the_largest_frame() {
        let mut bench = Bench::new(LINE);
        let (mut a, mut b) = (bench.host(), bench.host());
        let start = Instant::now();
        a.write_all(&[1; MAX_FRAME + 3]).await.unwrap();
        assert_eq!(bench.piece(start).await, (vec![1; MAX_FRAME], Duration::ZERO));
        b.write_all(b"\0b\0").await.unwrap();
        assert_eq!(bench.piece(start).await, (b"\0b\0".to_vec(), Duration::ZERO), "the rest is no piece yet");
        assert_eq!(bench.piece(start).await.0, [1; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frames_first_zero_still_ends_the_junk_of_another() {
        let mut bench = Bench::new(LINE);
        let (mut a, mut b) = (bench.host(), bench.host());
        a.write_all(b"\0").await.unwrap();
        b.write_all(b"junk").await.unwrap();
        drop(b);
        sleep(Duration::from_millis(10)).await;
        a.write_all(b"aaa\0").await.unwrap();
        assert_eq!(bench.got().await, b"junk\0aaa\0");
    }

    #[tokio::test(start_paused = true)]
    async fn every_host_gets_every_answer() {
        let mut bench = Bench::new(LINE);
        let mut hosts = [bench.host(), bench.host(), bench.host()];
        for answer in [b"\0one\0", b"\0two\0"] {
            bench.gate.write_all(answer).await.unwrap();
            for host in &mut hosts {
                hears(host, answer).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_has_said_its_last_still_hears_the_answer() {
        let mut bench = Bench::new(LINE);
        let mut a = bench.host();
        a.write_all(b"\0ask\0").await.unwrap();
        a.shutdown().await.unwrap();
        assert_eq!(bench.got().await, b"\0ask\0");
        bench.gate.write_all(b"\0answer\0").await.unwrap();
        hears(&mut a, b"\0answer\0").await;
        sleep(LINGER).await;
        assert_eq!(a.read(&mut [0; 8]).await.unwrap(), 0, "and is let go");
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_host_holds_nobody_up_and_is_still_there_when_it_thaws() {
        let mut bench = Bench::new(LINE);
        let (mut frozen, mut b) = (bench.host(), bench.host());
        frozen.write_all(b"\0half").await.unwrap(); // and there it stops
        for i in 0..10 * QUEUE {
            b.write_all(b"\0ask\0").await.unwrap();
            let answer = format!("\0answer {i:8}\0");
            bench.gate.write_all(answer.as_bytes()).await.unwrap();
            hears(&mut b, answer.as_bytes()).await;
        }
        let mut heard = Vec::new();
        let mut bytes = [0; 4_096];
        while let Ok(Ok(n)) = timeout(Duration::from_secs(1), frozen.read(&mut bytes)).await {
            assert_ne!(n, 0, "it is still connected");
            heard.extend_from_slice(&bytes[..n]);
        }
        assert!(heard.len() <= (QUEUE + 1) * 17 + 1_024, "what is kept for it is bounded: {}", heard.len());
        let last = format!("\0answer {:8}\0", 10 * QUEUE - 1);
        assert!(heard.ends_with(last.as_bytes()), "and it is the latest");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_floods_is_slowed_down_alone() {
        let mut bench = Bench::new(MAX_FRAME);
        let (mut flood, mut b) = (bench.host(), bench.host());
        let flooding = tokio::spawn(async move { while flood.write_all(&[0x55; 777]).await.is_ok() {} });
        sleep(Duration::from_secs(1)).await;
        assert!(!flooding.is_finished());
        b.write_all(b"\0bbb\0").await.unwrap();
        sleep(Duration::from_millis(1)).await;
        // What is in the line, what is being written, whose turn is next, who waits for a turn: then it is b's.
        let mut got = vec![0; 5 * MAX_FRAME];
        bench.gate.read_exact(&mut got).await.unwrap();
        assert!(got.windows(5).any(|bytes| bytes == b"\0bbb\0"), "it waits for a few pieces only");
        flooding.abort();
    }

    #[tokio::test]
    async fn over_tcp_until_the_gate_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mut gate, side) = duplex(LINE);
        let bridge = tokio::spawn(serve(listener, side));
        let mut hosts = Vec::new();
        for _ in 0..3 {
            hosts.push(tokio::net::TcpStream::connect(address).await.unwrap());
        }
        let mut got = [0; 5];
        for host in &mut hosts {
            host.write_all(b"\0ask\0").await.unwrap(); // so that each has been welcomed
            gate.read_exact(&mut got).await.unwrap();
        }
        gate.write_all(b"\0last\0").await.unwrap();
        drop(gate);
        for host in &mut hosts {
            let mut heard = Vec::new();
            host.read_to_end(&mut heard).await.unwrap();
            assert_eq!(heard, b"\0last\0");
        }
        bridge.await.unwrap().unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn hardly_anything_is_queued_before_an_emulator_that_does_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("line");
        let emulator = tokio::net::UnixListener::bind(&path).unwrap();
        let mut line = connect(&path).await.unwrap();
        let _side = emulator.accept().await.unwrap();
        let mut queued = 0;
        while let Ok(written) = timeout(Duration::from_millis(100), line.write(&[0x55; MAX_FRAME])).await {
            queued += written.unwrap();
        }
        assert!(queued <= 8 * MAX_FRAME, "{queued} bytes");
    }
}
