"""Logarithms to more digits than a number holds, for places where two of them nearly cancel.

With x = m*2**k and c the multiple of 1/128 next to m, log(x) = k*ln2 + log(c) + 2*atanh(s), s = (m - c)/(m + c) up to
1/360. The second part of the result keeps what the first loses: the error is below 1e-31 times the larger of 1 and the
logarithm, where the first alone has one of 1e-16.
"""

from __future__ import annotations

from klnumba.formulas.elementary import LN2_HI, LN2_LO, split_exponent, two_sum
from klnumba.formulas.primitives import fma
from klnumba.formulas.twofold import over, plus

LN2_LOWEST = 1.1612227229362532e-26  # what LN2_HI + LN2_LO leaves of ln2
TWO_FIFTHS, TWO_FIFTHS_LOW = 0.4, -2.2204460492503132e-17
TWO_THIRDS, TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17
FIRST = 90  # the multiple of 1/128 with which the tables begin

# log(j/128) as the sum of two numbers (tests/formulas/test_special.py).
LOGS = (
    -0.3522205935893521,
    -0.34117075740276714,
    -0.33024168687057687,
    -0.3194307707663612,
    -0.3087354816496133,
    -0.29815337231907635,
    -0.2876820724517809,
    -0.27731928541623435,
    -0.26706278524904525,
    -0.2569104137850272,
    -0.24686007793152578,
    -0.2369097470783577,
    -0.22705745063534608,
    -0.2173012756899814,
    -0.2076393647782445,
    -0.1980699137620938,
    -0.18859116980755003,
    -0.179201429457711,
    -0.16989903679539747,
    -0.16068238169047347,
    -0.15154989812720093,
    -0.14250006260728304,
    -0.13353139262452263,
    -0.1246424452072766,
    -0.1158318155251217,
    -0.1070981355563671,
    -0.09844007281325252,
    -0.08985632912186105,
    -0.0813456394539524,
    -0.07290677080808779,
    -0.06453852113757118,
    -0.05623971832287608,
    -0.048009219186360606,
    -0.039845908547199674,
    -0.0317486983145803,
    -0.023716526617316044,
    -0.015748356968139168,
    -0.007843177461025893,
    0.0,
    0.007782140442054949,
    0.015504186535965254,
    0.02316705928153438,
    0.030771658666753687,
    0.0383188643021366,
    0.0458095360312942,
    0.053244514518812285,
    0.06062462181643484,
    0.06795066190850775,
    0.07522342123758753,
    0.08244366921107459,
    0.08961215868968714,
    0.09672962645855111,
    0.10379679368164356,
    0.11081436634029011,
    0.11778303565638346,
    0.12470347850095724,
    0.13157635778871926,
    0.13840232285911913,
    0.1451820098444979,
    0.15191604202584197,
    0.15860503017663857,
    0.16524957289530717,
    0.17185025692665923,
    0.1784076574728183,
    0.184922338494012,
    0.19139485299962947,
    0.19782574332991987,
    0.2042155414286909,
    0.21056476910734964,
    0.21687393830061436,
    0.22314355131420976,
    0.22937410106484582,
    0.2355660713127669,
    0.24171993688714516,
    0.24783616390458127,
    0.25391520998096345,
    0.25995752443692605,
    0.26596354849713794,
    0.27193371548364176,
    0.2778684510034563,
    0.2837681731306446,
    0.28963329258304266,
    0.2954642128938359,
    0.3012613305781618,
    0.3070250352949119,
    0.3127557100038969,
    0.3184537311185346,
    0.324119468654212,
    0.329753286372468,
    0.3353555419211378,
    0.3409265869705932,
    0.34646676734620857,
    0.3519764231571782,
)
LOGS_LOW = (
    -5.7233316949182485e-18,
    1.9366790062602867e-17,
    1.0828321637483858e-17,
    -1.354256857264811e-18,
    1.6199186085148102e-17,
    1.720695867445866e-17,
    -2.607160616442564e-17,
    7.44528405583513e-18,
    7.32891532732017e-18,
    -2.502843296152504e-17,
    -1.361743371748368e-17,
    -1.9682402978398164e-18,
    -9.551415762738488e-18,
    -1.6168452453763015e-18,
    -1.2053243216686129e-17,
    -3.742843482461439e-18,
    7.432164219196925e-18,
    1.0785017454858423e-17,
    4.868008764439071e-19,
    3.650183553047837e-18,
    -5.1669593684615594e-18,
    9.926388234225749e-18,
    3.664457663660085e-18,
    5.808912678940971e-18,
    -4.338484369808096e-18,
    1.73705104015906e-18,
    4.439009633675136e-18,
    6.273760163689594e-19,
    -5.07707635593117e-18,
    6.306860257532778e-18,
    6.470486661692933e-18,
    3.2835149805605613e-18,
    -1.4390903347292205e-18,
    3.129547680315208e-18,
    -3.0382263084680858e-18,
    1.5774243488668215e-18,
    -1.0021578630528974e-18,
    -2.764708154124904e-19,
    0.0,
    -1.2819179123343845e-20,
    -3.278321022892429e-19,
    -1.1769544932063305e-18,
    1.0431732029005968e-18,
    -2.357996157351286e-18,
    1.902959866474257e-18,
    -1.665575816973663e-18,
    2.6424025938726934e-18,
    -1.2802141240611733e-18,
    -5.930604196293241e-18,
    5.700437773813987e-18,
    -5.4268129336647135e-18,
    -5.597397486289965e-19,
    5.47772415726659e-18,
    1.183748342825649e-18,
    -1.1971685747593677e-18,
    -4.6522609636496624e-18,
    1.1123000879729588e-17,
    4.447777301357527e-18,
    8.242418783022475e-18,
    6.4838631244022194e-18,
    1.1257003872182592e-17,
    -1.0094935622322628e-17,
    -6.0224538210113705e-18,
    -1.2432553788701131e-17,
    3.0236614153574064e-18,
    -1.2129496905792884e-17,
    1.2821194372980142e-17,
    2.7338281018722773e-18,
    -4.249405314729895e-18,
    4.551026193234283e-18,
    -9.091270597324799e-18,
    9.927671823978025e-18,
    -2.3943371495187355e-18,
    8.900990022166643e-18,
    -1.2432209578702523e-17,
    -8.048097394424201e-18,
    2.069806938978935e-17,
    5.3393802761314314e-18,
    7.83319637697442e-19,
    -9.16018294909263e-19,
    -2.032665581126656e-17,
    2.0535953219858174e-17,
    -2.16461086040599e-17,
    -9.048511144048564e-18,
    -1.2319916200101964e-17,
    -1.451808353098951e-17,
    2.7114779367326236e-17,
    -7.958214381893813e-18,
    2.122020616196946e-18,
    1.834564437059473e-17,
    1.7467136443544747e-17,
    1.028583585496265e-17,
    -1.2953893030191963e-17,
)


def log_twofold(x: float) -> tuple[float, float]:
    """log(x) of a positive number as the sum of two numbers.

    Examples
    --------
    >>> high, low = log_twofold(3.0)
    >>> print(f"{high} {low:.6e}")
    1.0986122886681098 -9.071297e-17
    """
    m, k = split_exponent(x)
    j = int(128.0 * m + 0.5)
    c = j / 128.0
    d = m - c
    s, rest = over(d, 0.0, *two_sum(m, c))
    cube, cube_low = _twice_atanh_beyond(s)
    high, e = two_sum(float(k) * LN2_HI, LOGS[j - FIRST])
    high, f = two_sum(high, 2.0 * s)
    high, g = two_sum(high, cube)
    lowest = float(k) * LN2_LO
    high, h = two_sum(high, lowest)
    small = LOGS_LOW[j - FIRST] + (fma(float(k), LN2_LO, -lowest) + float(k) * LN2_LOWEST)
    return two_sum(high, ((e + f) + (g + h)) + (cube_low + (2.0 * (rest + rest * (s * s + s * s * s * s)) + small)))


def _twice_atanh_beyond(s: float) -> tuple[float, float]:
    """2*atanh(s) - 2*s = 2*s**3/3 + 2*s**5/5 + ..., up to s = 1/360."""
    z = s * s
    z_low = fma(s, s, -z)
    cube = z * s
    cube_low = fma(z, s, -cube) + z_low * s
    fifth = cube * z
    fifth_low = fma(cube, z, -fifth) + (cube_low * z + cube * z_low)
    first = TWO_THIRDS * cube
    first_low = fma(TWO_THIRDS, cube, -first) + (TWO_THIRDS * cube_low + TWO_THIRDS_LOW * cube)
    second = TWO_FIFTHS * fifth
    second_low = fma(TWO_FIFTHS, fifth, -second) + (TWO_FIFTHS * fifth_low + TWO_FIFTHS_LOW * fifth)
    tail = fifth * (z * (2.0 / 7.0 + z * (2.0 / 9.0 + z * (2.0 / 11.0))))
    total, lost = two_sum(first, second)
    return total, tail + (lost + (first_low + second_low))


def log_ratio_beyond(a: float, b: float, less: float) -> tuple[float, float]:
    """log(a/b) - less of positive a and b as the sum of two numbers."""
    high_a, low_a = log_twofold(a)
    high_b, low_b = log_twofold(b)
    d, e = two_sum(high_a, -high_b)
    total, f = two_sum(d, -less)
    return two_sum(total, (e + f) + (low_a - low_b))


def log_less(x: float, x_low: float, less: float) -> float:
    """log(x + x_low) - less, right to the last digits of the difference."""
    high, low = log_ratio_beyond(x, 1.0, less)
    return high + (low + x_low / x)


def log_of_move(x: float, x_low: float, d: float) -> tuple[float, float]:
    """log((x + d)/x) of positive x, of twice the digits, and x + d; where d is small, to 1e-31 of itself.

    Examples
    --------
    >>> high, low = log_of_move(2.0**60, 0.0, 1.0)
    >>> print(f"{high:.6e} {low:.6e}")
    8.673617e-19 -3.761582e-37
    """
    both, both_low = plus(2.0 * x, 2.0 * x_low, d, 0.0)
    if abs(d) < both / 360.0:
        s, rest = over(d, 0.0, both, both_low)
        cube, cube_low = _twice_atanh_beyond(s)
        return plus(2.0 * s, 2.0 * (rest + rest * (s * s + s * s * s * s)), cube, cube_low)
    y, y_low = plus(x, x_low, d, 0.0)
    high, low = log_twofold(y)
    high_x, low_x = log_twofold(x)
    return plus(high, low + y_low / y, -high_x, -(low_x + x_low / x))
