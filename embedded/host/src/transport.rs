//! The line to a gate: a serial device, or the TCP port of a bridge.

use std::fmt;
use std::io;
use std::str::FromStr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_serial::SerialPortBuilderExt;

/// How fast a gate's serial line is, 8N1, unless it is said with the device.
const BAUD: u32 = 115_200;

/// Bytes both ways.
pub trait Line: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + ?Sized> Line for T {}

/// Where a gate's line begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port {
    /// `host:port`, written `tcp://host:port`.
    Tcp(String),
    /// A serial device, written `/dev/ttyACM0` or `COM5`; with a speed other than 115,200 baud `/dev/ttyUSB0@1000000`.
    Serial {
        /// What the system calls it.
        device: String,
        /// How fast it is.
        baud: u32,
    },
}

/// Why a text is no port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPort {
    /// Nothing is written there.
    Empty,
    /// A scheme other than `tcp://`.
    Scheme,
    /// `tcp://` without a host and a port from 1 to 65535.
    Address,
    /// A device with a speed that is none.
    Baud,
}

impl fmt::Display for BadPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a port is a serial device, or tcp://host:port",
            Self::Scheme => "a port is a serial device, or tcp://host:port; no other scheme is known",
            Self::Address => "after tcp:// comes host:port, the port from 1 to 65535",
            Self::Baud => "behind a serial device and @ comes its speed in baud: /dev/ttyUSB0@1000000",
        })
    }
}

impl std::error::Error for BadPort {}

impl FromStr for Port {
    type Err = BadPort;

    fn from_str(text: &str) -> Result<Self, BadPort> {
        let Some(address) = text.strip_prefix("tcp://") else {
            return match text {
                "" => Err(BadPort::Empty),
                _ if text.contains("://") => Err(BadPort::Scheme),
                _ => match text.rsplit_once('@') {
                    None => Ok(Self::Serial { device: text.to_owned(), baud: BAUD }),
                    Some((device, baud)) => match baud.parse() {
                        Ok(baud @ 1..) if !device.is_empty() => Ok(Self::Serial { device: device.to_owned(), baud }),
                        _ => Err(BadPort::Baud),
                    },
                },
            };
        };
        match address.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                Ok(Self::Tcp(address.to_owned()))
            }
            _ => Err(BadPort::Address),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Serial { device, baud: BAUD } => f.write_str(device),
            Self::Serial { device, baud } => write!(f, "{device}@{baud}"),
        }
    }
}

impl Port {
    /// Opens the line. How long that may take is the caller's to bound.
    pub async fn open(&self) -> io::Result<Box<dyn Line>> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?; // a frame leaves at once, or the window shrinks while it waits
                Ok(Box::new(stream))
            }
            Self::Serial { device, baud } => Ok(Box::new(tokio_serial::new(device, *baud).open_native_async()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_device_or_an_address() {
        for text in [
            "/dev/ttyACM0",
            "COM5",
            "/dev/ttyUSB0@1000000",
            "tcp://127.0.0.1:7033",
            "tcp://[::1]:7033",
            "tcp://gate.local:1",
        ] {
            assert_eq!(text.parse::<Port>().map(|port| port.to_string()), Ok(text.to_owned()));
        }
        for (text, why) in [
            ("", BadPort::Empty),
            ("udp://127.0.0.1:7033", BadPort::Scheme),
            ("tcp://", BadPort::Address),
            ("tcp://127.0.0.1", BadPort::Address),
            ("tcp://:7033", BadPort::Address),
            ("tcp://127.0.0.1:", BadPort::Address),
            ("tcp://127.0.0.1:0", BadPort::Address),
            ("tcp://127.0.0.1:65536", BadPort::Address),
            ("tcp://127.0.0.1:x", BadPort::Address),
            ("/dev/ttyUSB0@", BadPort::Baud),
            ("/dev/ttyUSB0@0", BadPort::Baud),
            ("/dev/ttyUSB0@fast", BadPort::Baud),
            ("@9600", BadPort::Baud),
        ] {
            assert_eq!(text.parse::<Port>(), Err(why), "{text}");
        }
        let usual = Port::Serial { device: "COM5".to_owned(), baud: 115_200 };
        assert_eq!(("COM5".parse(), "COM5@115200".parse()), (Ok(usual.clone()), Ok(usual)));
    }
}
