package types

import (
	"strings"
)

// Serializers that a job chose for a class, by a registration or as a default.

// givenSerializer returns the codec of the objects of a class in a serializer.
type givenSerializer func(class string, version int) kryoBody

func given(body func(int) kryoBody) givenSerializer {
	return func(_ string, version int) kryoBody { return body(version) }
}

// givenSerializers are the known serializers, by their simple names.
var givenSerializers = map[string]givenSerializer{
	"ProtobufSerializer": given(kryoFramed), "TBaseSerializer": given(kryoFramed), // of Twitter's chill
	"JavaSerializer": kryoJavaObject,
	"SpecificInstanceCollectionSerializerForArrayList": given(kryoCollection(false)), "AvroGenericDataArraySerializer": given(kryoAvroArray),
	"JodaDateTimeSerializer": given(jodaDateTime), "JodaIntervalSerializer": given(jodaInterval),
	"JodaLocalDateSerializer": given(jodaLocalDate), "JodaLocalTimeSerializer": given(jodaLocalTime), "JodaLocalDateTimeSerializer": given(jodaLocalDateTime),
}

// addDefaults adds the default serializers of a job, by their classes. A default is for
// the class and for those that extend it, whose bytes do not show it. It reports false
// if known classes may extend one.
func (k *kryoCodec) addDefaults(defaults map[string]string) bool {
	open := 0
	for class, serializer := range defaults {
		k.given[class] = givenSerializers[simpleName(serializer)]
		if kryoFinal[class] {
			continue
		}
		open++
		for _, p := range []string{"java.", "javax.", "sun.", "scala.", "org.joda.time.", "org.apache.flink."} {
			if strings.HasPrefix(class, p) {
				return false
			}
		}
	}
	if open > 1 { // of several, the first whose class is extended counts
		for class := range defaults {
			if !kryoFinal[class] {
				k.given[class] = nil
			}
		}
	}
	return true
}
