//! Clocks worth knowing: how far each may be off, and who says so.
//!
//! A figure is the bound of *one* clock against true time. The drift of a lease is the sum of two of them.

use crate::Drift;

/// A kind of clock, its bound, and where that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Clock {
    /// What it is, and under which conditions the bound holds.
    pub clock: &'static str,
    /// The bound.
    #[cfg_attr(feature = "serde", serde(rename = "drift_ppb"))]
    pub drift: Drift,
    /// The data sheet or document that states it.
    pub source: &'static str,
}

/// The clocks, from the best to the worst.
pub const CLOCKS: [Clock; 10] = [
    Clock {
        clock: "temperature-compensated crystal (DS3231), 0 to 40 °C",
        drift: Drift::from_ppm(2),
        source: "Maxim DS3231 data sheet 19-5170, Features (±2 ppm)",
    },
    Clock {
        clock: "temperature-compensated crystal (DS3231), -40 to 85 °C",
        drift: Drift::from_ppb(3_500),
        source: "Maxim DS3231 data sheet 19-5170, Features (±3.5 ppm)",
    },
    Clock {
        clock: "32.768 kHz crystal, standard grade, at 25 °C; a cold or hot one runs slower by 0.03 ppm/°C² more",
        drift: Drift::from_ppm(20),
        source: "CTS TF20 series data sheet 008-0353-0 Rev C, Frequency Tolerance",
    },
    Clock {
        clock: "32.768 kHz crystal, loosest grade, at 25 °C; a cold or hot one runs slower by 0.03 ppm/°C² more",
        drift: Drift::from_ppm(50),
        source: "CTS TF20 series data sheet 008-0353-0 Rev C, Ordering Information",
    },
    Clock {
        clock: "nRF52 32.768 kHz RC oscillator, calibrated at least every 8 s at a temperature constant within 0.5 °C",
        drift: Drift::from_ppm(500),
        source: "nRF52810 product specification, LFRC, as stated by devzone.nordicsemi.com question 62300",
    },
    Clock {
        clock: "Linux host under NTP; the most that the kernel corrects a frequency by (an offset is slewed faster)",
        drift: Drift::from_ppm(500),
        source: "torvalds/linux include/linux/timex.h (MAXFREQ 500000 ns/s)",
    },
    Clock {
        clock: "STM32 16 MHz internal oscillator (HSI), at 25 °C",
        drift: Drift::from_ppm(10_000),
        source: "ST STM32L151x6/8/B data sheet DocID17659 Rev 10, Table 30",
    },
    Clock {
        clock: "STM32 16 MHz internal oscillator (HSI), -40 to 105 °C",
        drift: Drift::from_ppm(40_000),
        source: "ST STM32L151x6/8/B data sheet DocID17659 Rev 10, Table 30 (-4 to +3 %)",
    },
    Clock {
        clock: "Linux host while chrony slews at its default limit, one twelfth",
        drift: Drift::from_ppb(83_333_334),
        source: "mlichvar/chrony doc/chrony.conf.adoc, maxslewrate (83333.333 ppm)",
    },
    Clock {
        clock: "STM32 32 kHz internal oscillator (LSI), specified 17 to 47 kHz",
        drift: Drift::from_ppb(468_750_000),
        source: "ST STM32F407 data sheet, as stated by techoverflow.net (2021-07-26)",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, WindowInput};

    #[test]
    fn each_has_a_source_and_can_be_reckoned_with_and_the_worst_comes_last() {
        for pair in CLOCKS.windows(2) {
            assert!(pair[0].drift <= pair[1].drift, "{} before {}", pair[0].clock, pair[1].clock);
        }
        for Clock { clock, drift, source } in CLOCKS {
            assert!(!clock.is_empty() && !source.is_empty());
            let window = WindowInput::new(Duration::from_secs(10), drift + drift).window();
            assert!(window.is_ok_and(|w| w.safe), "two of {clock}");
        }
    }
}
