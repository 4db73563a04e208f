//! A line to a server that goes dead behind one request: that arrives, at once or late, and nothing else does, either way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What lets every client through to one server, until it is told otherwise. Dropping it takes no new ones.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// What the request has in it behind which all goes dead, and whether it comes late itself.
    last: Mutex<Option<(Vec<u8>, bool)>>,
    dead: AtomicBool,
    turned_away: AtomicUsize,
    lines: Mutex<Vec<Arc<Line>>>,
    gone: AtomicBool,
}

#[derive(Debug)]
struct Line {
    client: TcpStream,
    server: TcpStream,
}

impl Proxy {
    /// Lets everything through to the server at this port of 127.0.0.1, both ways, for the time being.
    ///
    /// # Panics
    /// Where there is no port to listen on.
    pub fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, shared) = (listener.local_addr().unwrap().port(), Arc::new(Shared::default()));
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if theirs.gone.load(Ordering::SeqCst) {
                    return;
                }
                theirs.take(client, server);
            }
        });
        Self { port, shared }
    }

    /// The next request that has these bytes in it arrives. From then on nothing comes back, on no line, nothing more gets
    /// through, and who comes anew is turned away.
    ///
    /// # Panics
    /// Where one of its threads has panicked.
    pub fn die_behind(&self, request: &[u8]) {
        *self.shared.last.lock().unwrap() = Some((request.to_vec(), false));
    }

    /// The same, but the request is on its way for as long as all is dead: it arrives with [`Self::deliver`].
    ///
    /// # Panics
    /// Where one of its threads has panicked.
    pub fn die_before(&self, request: &[u8]) {
        *self.shared.last.lock().unwrap() = Some((request.to_vec(), true));
    }

    /// What was kept back arrives, though who sent it may be gone, and who comes from now on gets through.
    pub fn deliver(&self) {
        self.shared.dead.store(false, Ordering::SeqCst);
    }

    /// Whether that request has come by.
    pub fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::SeqCst)
    }

    /// Breaks all lines, so that both ends know it.
    ///
    /// # Panics
    /// Where one of its threads has panicked.
    pub fn cut(&self) {
        self.shared.lines.lock().unwrap().drain(..).for_each(|line| line.cut());
    }

    /// How many it has turned away.
    pub fn turned_away(&self) -> usize {
        self.shared.turned_away.load(Ordering::SeqCst)
    }

    /// Who comes from now on gets through.
    pub fn mend(&self) {
        self.cut();
        self.deliver();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // it looks up when somebody comes
    }
}

impl Shared {
    fn take(self: &Arc<Self>, client: TcpStream, server: u16) {
        if self.dead.load(Ordering::SeqCst) {
            self.turned_away.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { return };
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let line = Arc::new(Line { client, server });
        self.lines.lock().unwrap().push(Arc::clone(&line));
        let (shared, answering) = (Arc::clone(self), Arc::clone(&line));
        thread::spawn(move || shared.answer(&answering));
        let shared = Arc::clone(self);
        thread::spawn(move || shared.ask(&line));
    }

    /// Passes on what the client says.
    fn ask(&self, line: &Line) {
        let (mut bytes, mut said) = ([0; 4_096], Vec::new());
        while let Ok(length @ 1..) = (&line.client).read(&mut bytes) {
            if self.dead.load(Ordering::SeqCst) {
                continue;
            }
            said.extend_from_slice(&bytes[..length]);
            // Before the server hears of it, and so before it can answer.
            let is_late = self.dies_behind(&said);
            while is_late && self.dead.load(Ordering::SeqCst) && !self.gone.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(10));
            }
            // What is looked for may come in two pieces.
            said.drain(..said.len().saturating_sub(256));
            if (&line.server).write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        line.cut();
    }

    /// Whether it is the request that comes late.
    fn dies_behind(&self, said: &[u8]) -> bool {
        let mut last = self.last.lock().unwrap();
        let found = last.take_if(|(request, _)| said.windows(request.len()).any(|part| part == request));
        if found.is_some() {
            self.dead.store(true, Ordering::SeqCst);
        }
        found.is_some_and(|(_, is_late)| is_late)
    }

    /// Passes on what the server says.
    fn answer(&self, line: &Line) {
        let mut bytes = [0; 4_096];
        while let Ok(length @ 1..) = (&line.server).read(&mut bytes) {
            let dead = self.dead.load(Ordering::SeqCst);
            if !dead && (&line.client).write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        line.cut();
    }
}

impl Line {
    fn cut(&self) {
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }
}
