"""The charsets of the web. In: the name that a page gives. Out: the Python codec that reads it.

Python has more codecs than the web has charsets: `punycode` takes minutes for a page, others run
code or unpack archives. So only those that the WHATWG's Encoding Standard names are used.
"""

# By codec; the first word of a line. The other words are what pages call it.
_TABLE = """
utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8
cp866 866 csibm866 ibm866
iso8859-2 iso-8859-2 iso88592 iso_8859-2 latin2 l2 csisolatin2
iso8859-3 iso-8859-3 iso88593 iso_8859-3 latin3 l3 csisolatin3
iso8859-4 iso-8859-4 iso88594 iso_8859-4 latin4 l4 csisolatin4
iso8859-5 iso-8859-5 iso88595 iso_8859-5 cyrillic csisolatincyrillic
iso8859-6 iso-8859-6 iso88596 iso_8859-6 arabic asmo-708 ecma-114 iso-8859-6-e iso-8859-6-i
iso8859-7 iso-8859-7 iso88597 iso_8859-7 greek greek8 ecma-118 sun_eu_greek
iso8859-8 iso-8859-8 iso88598 iso_8859-8 hebrew iso-8859-8-e iso-8859-8-i logical visual
iso8859-10 iso-8859-10 iso885910 latin6 l6 csisolatin6
iso8859-13 iso-8859-13 iso885913
iso8859-14 iso-8859-14 iso885914
iso8859-15 iso-8859-15 iso885915 iso_8859-15 l9 csisolatin9
iso8859-16 iso-8859-16
koi8-r koi koi8 koi8_r cskoi8r
koi8-u koi8-ru
mac-roman macintosh mac x-mac-roman csmacintosh
mac-cyrillic x-mac-cyrillic x-mac-ukrainian
cp874 windows-874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
cp1250 windows-1250 x-cp1250
cp1251 windows-1251 x-cp1251
cp1252 windows-1252 x-cp1252 ascii us-ascii ansi_x3.4-1968 iso-8859-1 iso8859-1 iso88591 \
 iso_8859-1 latin1 latin-1 l1 cp819 ibm819 csisolatin1 iso-ir-100
cp1253 windows-1253 x-cp1253
cp1254 windows-1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 latin5 l5 csisolatin5
cp1255 windows-1255 x-cp1255
cp1256 windows-1256 x-cp1256
cp1257 windows-1257 x-cp1257
cp1258 windows-1258 x-cp1258
gb18030 gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese csgb2312 csiso58gb231280
big5hkscs big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc_jp euc-jp cseucpkdfmtjapanese x-euc-jp
iso2022_jp iso-2022-jp csiso2022jp
cp932 shift_jis shift-jis sjis ms932 ms_kanji windows-31j csshiftjis x-sjis
cp949 euc-kr euc_kr korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949 cseuckr
utf-16-be utf-16be unicodefffe
utf-16-le utf-16le utf-16 ucs-2 unicode iso-10646-ucs-2 csunicode unicodefeff
"""
_CODECS = {
    name: codec
    for codec, *names in map(str.split, _TABLE.strip().splitlines())
    for name in (codec, *names)
}
# What a page begins with says more than any header.
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xfe\xff", "utf-16"), (b"\xff\xfe", "utf-16"))


def codec_of(charset: str, beginning: bytes = b"") -> str:
    """What is no charset of the web is read as UTF-8, in which most pages are written."""
    marked = next((codec for mark, codec in _MARKS if beginning.startswith(mark)), None)
    return marked or _CODECS.get(charset.strip().lower(), "utf-8")
